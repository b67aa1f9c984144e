"""``python -m earlyjoin.report.fuzz [--seconds 60] [--seed 7] [--case 123456]``: see the package."""

from __future__ import annotations

import argparse
import sys
import time

from earlyjoin.errors import InputError


def main(arguments: list[str] | None = None) -> int:
    """Run cases for some time, or a single one; 0 if none failed."""
    parser = argparse.ArgumentParser(prog="python -m earlyjoin.report.fuzz", description="Random joins against DuckDB.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long new cases are begun (default: 60)")
    parser.add_argument("--seed", type=int, help="which cases (default: others each time)")
    parser.add_argument("--case", type=int, action="append", help="run just this case; may be given several times")
    given = parser.parse_args(arguments)
    from earlyjoin.report.fuzz import oracle, telling, workers

    try:
        oracle.connect().close()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    begin = time.monotonic()
    seed = given.seed if given.seed is not None else int(time.time()) % 1_000_000
    if not given.case:
        print(f"seed {seed}: cases for {given.seconds:g} s", flush=True)
    seeds = given.case or telling.until(telling.numbers(seed), given.seconds)
    tally = telling.Tally(every=bool(given.case))
    with workers.Worker() as worker:
        try:
            for number, text, verdict in worker.results(seeds):
                tally.take(number, text, verdict)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
    return tally.end(time.monotonic() - begin)


if __name__ == "__main__":
    sys.exit(main())
