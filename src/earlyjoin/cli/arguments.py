"""What the command line accepts, and its help."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from earlyjoin import __version__
from earlyjoin.cli.speaking import standard_output

EXIT_DONE, EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130
_MOST = 2**63 - 1
_DIGITS = 1000
_JOIN_TYPES = ("inner", "left", "right", "full", "semi", "anti", "cross")

_DESCRIPTION = """\
Joins data while it is still arriving: the first rows at once, every row exactly
once, inside a memory budget."""

_EPILOG = """\
examples:
  earlyjoin demo
  earlyjoin join orders.parquet items.parquet --on orderkey -o joined.parquet
  earlyjoin join trades.csv quotes.csv --on symbol --band time:5s --limit 1000

exit codes: 0 done, 1 failed, 2 bad arguments or input, 130 interrupted (what was
found is kept and valid, but for directories of Spark). EARLYJOIN_DEBUG=1 in the
environment adds a traceback to errors."""

_BENCH = "Runs the same work here and in other engines, in turns, and prints medians and their ratios."

_EXPERIMENT = (
    "Runs a figure of one of the papers again on counted work, and prints its numbers beside the paper's. "
    "EARLYJOIN_DATA in the environment names a directory with real data; without it data is generated."
)

_JOIN_DESCRIPTION = """\
Joins two inputs while they are read. LEFT and RIGHT are files, directories (also
partitioned: year=2024/month=1/...) or quoted patterns such as 'part-*.parquet', of
Parquet, CSV, Arrow IPC or JSON lines. - is standard input; that and other pipes are
read once, as they come, and may bring CSV, JSON lines or Arrow IPC.
With MORE inputs, all of them are joined at once on the same attribute: --on COLUMN,
or --on INPUT.COLUMN=INPUT.COLUMN, where an input is named as its file is, without
directory and ending.

Rows go to the file named with -o, or with -o - to standard output: as CSV, unless
--output-format says otherwise. Without -o they go there, too; but on a terminal the
first 20 are shown and all are counted, unless --limit says how many to print, and
with --json they are counted, not printed. Progress and messages go to standard
error. An output that is one of the inputs is refused."""

_JOIN_EPILOG = """\
examples:
  earlyjoin join orders.parquet items.parquet --on orderkey -o joined.parquet
  earlyjoin join people.csv visits.csv --on id=person_id --how left --limit 10
  earlyjoin join trades.parquet quotes.parquet --on symbol --band time:5s --json
  earlyjoin join calls.csv shifts.csv --overlap start,stop=begin,end -o covered.csv
  earlyjoin join a.csv b.csv --where 'low<=price' --where 'high>price' --explain
  earlyjoin join a.csv b.csv --on k --arrivals-left bursty:1ms:50:200ms --limit 9
  earlyjoin join a.csv b.csv c.csv --on a.id=b.id --on b.id=c.a_id -o all.parquet
  zcat a.csv.gz | earlyjoin join - sales/ --on id -o - --output-format arrow | ...

Column names with commas, colons or operators in them are quoted with double
quotes or backticks: --on '"order, id"=id'. In --where, of two names the first is
a column of LEFT and the second of RIGHT, unless left. or right. stands before it;
texts and dates are in single quotes: --where "right.day>='2024-02-29'". Such a
condition says which rows match; an outer join keeps those that do not.

Ctrl-C, SIGTERM or a closed terminal end the join and keep what was found as
NAME.partial.EXT beside the output (NAME.partial-2.EXT where that is there already
and --overwrite is not given); a second Ctrl-C aborts at once and keeps nothing.
What a killed process left is removed by the next one that writes or spills there.
A directory that Spark writes by itself is there when it is complete: Ctrl-C keeps
nothing of it, and what it was to replace stays."""


class _ArgumentParser(argparse.ArgumentParser):
    """Errors as the rest of the command line has them: two plain lines."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"earlyjoin: {message}\ntry '{self.prog} --help'\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is None or file is not sys.stdout:
            super()._print_message(message, file)
        elif message:  # argparse takes no notice of help that cannot be written
            with standard_output():
                file.write(message)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The arguments as a namespace with ``command``; exits with 2 and a message when they are wrong."""
    parser = _parser()
    known, unknown = parser.parse_known_args(arguments)
    if unknown and known.command == "join" and not any(text.startswith("-") and text != "-" for text in unknown):
        known.more += unknown  # inputs that stand behind an option
    elif unknown:
        parser.error(f"unknown argument: {' '.join(unknown)}")
    if known.command is None:
        parser.error("say what to do: join, demo, experiment, bench, archive or algorithms")
    return known


def _parser() -> _ArgumentParser:
    def raw(prog: str) -> argparse.HelpFormatter:
        return argparse.RawDescriptionHelpFormatter(prog, max_help_position=27)

    parser = _ArgumentParser(
        prog="earlyjoin", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=raw, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"earlyjoin {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    join = commands.add_parser(
        "join",
        help="join two inputs or more",
        description=_JOIN_DESCRIPTION,
        epilog=_JOIN_EPILOG,
        formatter_class=raw,
        allow_abbrev=False,
        usage="earlyjoin join LEFT RIGHT [MORE ...] --on COLUMN [other conditions and options]",
    )
    join.add_argument("left", metavar="LEFT")
    join.add_argument("right", metavar="RIGHT")
    join.add_argument("more", metavar="MORE", nargs="*")
    _add_conditions(join)
    _add_results(join)
    _add_running(join)
    _add_reading(join)
    demo = commands.add_parser(
        "demo",
        help="watch two generated inputs being joined",
        description="Joins two generated tables on Spark, or two bursty sources in this process (--engine "
        "local), live, and ends with what came when.",
        allow_abbrev=False,
    )
    text = "spark: two tables, beside plain Spark; local: two bursty sources (default: spark if Java is there)"
    demo.add_argument("--engine", choices=("auto", "spark", "local"), default="auto", metavar="NAME", help=text)
    demo.add_argument("--master", metavar="URL", help="where Spark runs (default: here)")
    demo.add_argument("--seconds", type=_seconds, metavar="S", help="local: how long the sources take (default 10)")
    demo.add_argument("--seed", type=int, default=0, metavar="N", help="other data and other bursts (default 0)")
    demo.add_argument("-q", "--quiet", action="store_true", help="print only what came when, at the end")
    archive = commands.add_parser(
        "archive",
        help="make a zip of earlyjoin for Spark's executors",
        description="Writes the package as a zip for spark-submit --py-files, or spark.addArtifacts on Spark Connect.",
        allow_abbrev=False,
    )
    archive.add_argument("-o", "--output", default="earlyjoin.zip", metavar="ZIP", help="default earlyjoin.zip")
    _add_bench(
        commands.add_parser("bench", help="measure against other engines", description=_BENCH, allow_abbrev=False)
    )
    _add_experiment(
        commands.add_parser(
            "experiment", help="run a paper's figure again", description=_EXPERIMENT, allow_abbrev=False
        )
    )
    commands.add_parser("algorithms", help="list the algorithms and what they can do", allow_abbrev=False)
    return parser


def _add_experiment(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", metavar="NAME", help="'list', or one that it lists")
    add("--scale", type=_scale, metavar="S", help="size of the inputs, 1 is the paper's (default: as each one says)")
    add("--seed", type=int, default=0, metavar="N", help="for everything that is random (default 0)")
    add("--plot", metavar="FILE", help="draw it into this file: .png, .svg or .pdf")
    add("--json", action="store_true", help="print curves and numbers as JSON")


def _add_bench(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="which ones (default: all)")
    add("--scale", type=_scale, default=1.0, metavar="SF", help="TPC-H scale factor (default 1)")
    add("--rounds", type=_positive, default=3, metavar="N", help="runs of each engine, in turns (default 3)")
    add("--data", metavar="DIR", help="where to keep the generated data (default: a cache directory)")
    add("--json", action="store_true", help="print every timing as JSON")


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "condition",
        "Each may be repeated; all must hold. Without =RIGHT the columns have the same names on both sides.",
    )
    add = group.add_argument
    add("--on", action="append", metavar="L=R", help="equal columns: k, a=b, or several: a=b,c")
    add("--band", action="append", metavar="L=R:EPS", help="at most EPS apart; EPS is a number or a time such as 5s")
    text = "compares columns, or one with a constant: a<b, left.a>=5, \"b='x' or a=b\"; signs < <= > >= = <>"
    add("--where", action="append", metavar="L<R", help=text)
    add("--overlap", action="append", metavar="S,E=S,E", help="intervals from column S to column E that overlap")
    add("--intersect", action="append", metavar="RECT=RECT", help="rectangles x1,y1,x2,y2 that intersect")
    add("--near", action="append", metavar="X,Y=X,Y:EPS", help="points at most EPS apart, in any number of columns")
    add("--null-safe", action="store_true", help="--on: null equals null")
    text = f"{', '.join(_JOIN_TYPES)} (default inner); other names too, such as left_outer, outer, left_anti"
    add("--how", type=_join_type, default="inner", metavar="TYPE", help=text)


def _add_results(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("result").add_argument
    text = "write to this file: .parquet, .csv, .arrow or .jsonl (from Spark: a directory of files); -: standard output"
    add("-o", "--output", metavar="PATH", help=text)
    formats = ("parquet", "csv", "arrow", "json")
    text = "format of the output, if its name does not tell: parquet, csv, arrow, json (standard output: csv)"
    add("--output-format", choices=formats, metavar="NAME", help=text)
    add("--overwrite", action="store_true", help="replace the output if it exists")
    add("--limit", type=_rows, metavar="N", help="stop after N rows")
    text = "sum, avg or count of a column or an expression over the result, with an interval while it runs; repeatable"
    add("--aggregate", action="append", metavar="[NAME=]SUM(COL)", help=text)
    names = ("honest", "paper")
    text = "intervals of the estimates: honest ones (default), or those of the PMJ paper"
    add("--estimator", choices=names, default="honest", metavar="NAME", help=text)
    add("--suffixes", metavar="L,R", help="added to column names that both inputs have (default ',_right')")
    add("--json", action="store_true", help="end with a summary as one JSON object on standard output")
    add("--explain", action="store_true", help="print what would be done and why, and stop")
    add("-q", "--quiet", action="store_true", help="no progress and no messages but errors")


def _add_running(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("running").add_argument
    add("--algorithm", default="auto", metavar="NAME", help="auto, or one that 'earlyjoin algorithms' lists")
    text = "an option of that algorithm, such as fan-in=4; 'earlyjoin algorithms' lists them"
    add("--option", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "spark, local, or auto (default): spark, unless inputs are small or an option is for local alone"
    add("--engine", choices=("auto", "spark", "local"), default="auto", metavar="NAME", help=text)
    add(
        "--master",
        metavar="URL",
        help="where Spark runs: spark://host:7077, sc://host, yarn, … (default: here)",
    )
    add("--memory", metavar="SIZE", help="64MB, 1.5GiB, 300000rows (default: a quarter of the machine's)")
    add("--spill-dir", metavar="DIR", help="where to put what does not fit into memory (default: the system's place)")
    text = (
        "read A rows of LEFT for B of RIGHT and so on; A:B>C:D switches when memory is full, A:B>C:D@N after N "
        "results; ehja, ehj1, ehj2, ehj*, dphj are strategies by name (default auto: as suits algorithm and sizes)"
    )
    add("--reading", default="auto", metavar="A:B", help=text)
    driving = ("auto", "pull", "push")
    text = "pull: read as --reading says; push: take what comes first; auto: push if an input is slow (default)"
    add("--driving", choices=driving, default="auto", metavar="WAY", help=text)
    add("--wait", default="25ms", metavar="TIME", help="silence after which disk work starts (default 25ms)")
    add("--batch-rows", type=_positive, default=65536, metavar="N", help="most rows in a batch (default 65536)")
    add("--seed", type=int, default=0, metavar="N", help="for everything that is random (default 0)")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("inputs").add_argument
    formats = ("parquet", "csv", "arrow", "json")
    for side in ("left", "right", "more"):
        text = f"format of {side.upper()}, if its name does not tell: {', '.join(formats)}"
        add(f"--format-{side}", choices=formats, metavar="NAME", help=text)
    for side in ("left", "right"):
        add(f"--{side}-columns", metavar="A,B", help=f"read only these columns of {side.upper()}")
    add("--delimiter", metavar="CHAR", help="between the fields of CSV inputs (default ',', and tab in .tsv files)")
    for side in ("left", "right", "more"):
        add(f"--delimiter-{side}", metavar="CHAR", help=f"the same, for {side.upper()} alone")
    for side in ("left", "right", "more"):
        text = f"types of columns of {side.upper()} (CSV, JSON lines), such as id=int64,zip=string"
        add(f"--types-{side}", metavar="A=TYPE", help=text)
    for side in ("left", "right"):
        text = f"let {side.upper()} arrive as over a network: reliable:1ms, bursty:1ms:50:200ms, …"
        add(f"--arrivals-{side}", metavar="SPEC", help=text)
    add(
        "--packet-rows", type=_positive, default=1000, metavar="N", help="rows in a packet of --arrivals (default 1000)"
    )


def _join_type(text: str) -> str:
    if text in _JOIN_TYPES:
        return text
    # Imported here: help and other errors of arguments come without loading the kernels.
    from earlyjoin.algorithms.matching.join_types import JoinType, is_cross
    from earlyjoin.errors import InputError

    try:
        return "cross" if is_cross(text) else JoinType.named(text).value
    except InputError as error:
        raise argparse.ArgumentTypeError(error.command or str(error)) from None


def _rows(text: str) -> int:
    return _whole(text, 0)


def _positive(text: str) -> int:
    return _whole(text, 1)


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or (len(text) < _DIGITS and int(text) < least):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
    if len(text) > _DIGITS or int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is too large: at most {_MOST}")
    return int(text)


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0.001 <= scale <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a scale factor between 0.001 and 1000")
    return scale


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds between 0.1 and 3600")
    return seconds
