"""Run by the conformance suite in a process of its own: restores saved operators and runs them to their ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.conditions import KINDS
from conformance.scenario import Run, scenario_of


def main(directory: Path) -> None:
    script = json.loads((directory / "script.json").read_text())
    kind = next(kind for kind in KINDS if kind.name == script["kind"])
    (spill := directory / "other-spill").mkdir()
    run = Run(script["algorithm"], kind, scenario_of(script["scenario"]), spill)
    run.close()
    run.restore(directory / "saved", script["counters"], script["next_tick"])
    for _ in run.resumed(script["step"]):
        pass
    run.close()
    (directory / "output.json").write_text(json.dumps(run.output))


if __name__ == "__main__":
    for saved in sys.argv[1:]:
        main(Path(saved))
