"""Every example runs, and says what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "first_rows.py": "50,000 rows, the first after",
    "band_join.py": "A 10.0 9.9\n",
    "three_inputs.py": "6,000 minutes with all three",
    "slow_sources.py": "rows from (20000, 20000) rows read",
    "into_other_libraries.py": "25 pairs, 4 rows kept on the left",
    "pause_and_resume.py": "250,000 in all",
}


def test_all_examples_are_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_example(name: str) -> None:
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
