"""A query at a glance: one line for ``repr``, a small table for notebooks. Told from what is known; nothing is read."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import pyarrow as pa

from earlyjoin.query.life import State

_LONGEST = 200
_MOST_COLUMNS = 12
_ENDINGS = {
    State.NEW: "new, nothing was read yet",
    State.RUNNING: "running, {rows} so far",
    State.FINISHED: "finished, {rows}",
    State.STOPPED: "stopped after {rows}",
    State.PAUSED: "paused after {rows}",
    State.FAILED: "failed after {rows}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Portrait:
    """What there is to say about a query."""

    join: str
    """Join type and condition."""
    engine: str
    algorithm: str
    state: State
    rows: int
    schema: pa.Schema

    def line(self) -> str:
        """The query in one line, for ``repr``."""
        return f"<earlyjoin.Query {shortened(self.join)}; {self.engine}: {self.algorithm}; {self._life()}>"

    def html(self) -> str:
        """For ``_repr_html_``: whatever comes from data or its names is escaped."""
        columns = [f"{field.name} ({field.type})" for field in list(self.schema)[:_MOST_COLUMNS]]
        more = len(self.schema) - len(columns)
        if more > 0:
            columns.append(f"and {more:,} more")
        facts = [
            ("join", shortened(self.join)),
            ("engine", self.engine),
            ("algorithm", self.algorithm),
            ("state", self._life()),
            ("columns", ", ".join(shortened(column) for column in columns)),
        ]
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in facts
        )
        return f"<table><caption>earlyjoin.Query</caption><tbody>{rows}</tbody></table>"

    def _life(self) -> str:
        return _ENDINGS[self.state].format(rows="1 row" if self.rows == 1 else f"{self.rows:,} rows")


def shortened(text: str) -> str:
    """At most so many characters, in one line."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
