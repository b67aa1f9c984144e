"""The budget: how limits are read, and that nothing is ever booked above them."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from earlyjoin.errors import BudgetExceeded, InputError
from earlyjoin.state import budget as budget_module
from earlyjoin.state.budget import MIN_BYTES, MIN_ROWS, Account, Budget, MemoryLimit, format_bytes


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("64MB", 64 * 10**6),
        ("64mb", 64 * 10**6),
        (" 64 MB ", 64 * 10**6),
        ("64M", 64 * 10**6),
        ("1.5GiB", 3 * 2**29),
        ("1.5 gb", 1_500_000_000),
        ("2T", 2 * 10**12),
        ("1TiB", 2**40),
        ("512KiB", 2**19),
        ("100kB", 100_000),
        ("100k", 100_000),
        ("70000", 70_000),
        ("70000b", 70_000),
        (70_000, 70_000),
        (64 * 1024, 64 * 1024),
    ],
)
def test_sizes_in_bytes(text: str | int, bytes_: int) -> None:
    assert MemoryLimit.parse(text) == MemoryLimit(bytes=bytes_)


@pytest.mark.parametrize("text", ["300000rows", "300000 rows", "300000ROWS", "300000row", "300000.0 rows"])
def test_sizes_in_rows(text: str) -> None:
    assert MemoryLimit.parse(text) == MemoryLimit(rows=300_000)


@pytest.mark.parametrize(
    "text",
    ["", " ", "lots", "64XB", "-64MB", "64MB64MB", "6 4MB", "1e9", "MB", "rows", "1.5rows", "nan", "inf", "64,5MB",
     "0x10", "9" * 400, "9" * 400 + "rows", "9" * 305 + "GB", -1, True],
)  # fmt: skip
def test_nonsense_is_refused_with_an_example(text: str | int) -> None:
    with pytest.raises(InputError, match="is not a size; write for example 64MB") as caught:
        MemoryLimit.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "memory of 0 bytes is too small; give at least 64KiB"),
        ("1kB", "memory of 1000 bytes is too small; give at least 64KiB"),
        (MIN_BYTES - 1, "too small; give at least 64KiB"),
        ("0rows", "memory of 0 rows is too small; give at least 8rows"),
        (f"{MIN_ROWS - 1}rows", "too small; give at least 8rows"),
    ],
)
def test_too_small_is_refused_with_the_least(text: str | int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        MemoryLimit.parse(text)


def test_the_least_that_messages_name_is_accepted() -> None:
    assert MemoryLimit.parse("64KiB").bytes == MIN_BYTES
    assert MemoryLimit.parse("8rows").rows == MIN_ROWS


def test_bytes_or_rows_but_not_both_and_not_neither() -> None:
    for limits in ({}, {"bytes": 10**6, "rows": 100}):
        with pytest.raises(InputError, match="one of them only"):
            MemoryLimit(**limits)


def test_nothing_given_is_a_quarter_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "physical_memory_bytes", lambda: 8 * 2**30)
    assert MemoryLimit.parse(None).bytes == 2 * 2**30
    monkeypatch.setattr(budget_module, "physical_memory_bytes", lambda: 1000)
    assert MemoryLimit.parse(None).bytes == MIN_BYTES
    limit = MemoryLimit(rows=9)
    assert MemoryLimit.parse(limit) is limit


def test_limits_in_words() -> None:
    assert str(MemoryLimit(rows=300_000)) == "300,000 rows"
    assert str(MemoryLimit(bytes=8 * 10**6)) == "8.0 MB"
    assert [format_bytes(n) for n in (0, 999, 1000, 12_300_000, 5 * 10**12)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "12.3 MB",
        "5.0 TB",
    ]


@given(
    limit=st.builds(lambda n: MemoryLimit(rows=n), st.integers(8, 1000))
    | st.builds(lambda n: MemoryLimit(bytes=n), st.integers(MIN_BYTES, 10**9)),
    fractions=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    least_rows=st.integers(1, 2000),
    least_bytes=st.integers(1, 10**6),
)
def test_a_split_gives_exactly_the_whole(
    limit: MemoryLimit, fractions: list[float], least_rows: int, least_bytes: int
) -> None:
    budget = Budget(limit)
    for fraction in fractions:
        whole = budget.limit.rows if budget.limit.rows is not None else budget.limit.bytes
        first, second = budget.split(fraction, least_rows=least_rows, least_bytes=least_bytes)
        sizes = [b.limit.rows if limit.rows is not None else b.limit.bytes for b in (first, second)]
        assert whole is not None
        assert min(sizes) >= 0
        assert sum(sizes) == whole
        if whole > 1:
            assert sizes[1] >= 1
        budget = second
        if whole < 2:
            return


def test_a_share_is_bound_by_itself_and_by_the_whole() -> None:
    whole = Budget(MemoryLimit(rows=100))
    first, second = whole.split(0.25)
    one, two, direct = first.account("one"), second.account("two"), whole.account("direct")
    assert not one.try_reserve(rows=26)
    assert one.try_reserve(rows=25)
    assert direct.try_reserve(rows=75)
    assert not two.try_reserve(rows=1), "the whole is full, whatever the share has left"
    direct.release(rows=1)
    assert two.try_reserve(rows=1)
    assert (whole.used_rows, first.used_rows, second.used_rows) == (100, 25, 1)
    assert whole.fraction_used == 1.0


def test_a_refusal_books_nothing_and_says_who_asked() -> None:
    budget = Budget(MemoryLimit(bytes=MIN_BYTES))
    account = budget.account("payload")
    account.reserve(MIN_BYTES)
    with pytest.raises(BudgetExceeded, match=r"payload needs 1 B more than is free of the memory of 65.5 kB"):
        account.reserve(1)
    assert (account.bytes, budget.used_bytes, budget.peak_bytes) == (MIN_BYTES, MIN_BYTES, MIN_BYTES)
    account.clear()
    assert (account.bytes, budget.used_bytes) == (0, 0)
    with pytest.raises(BudgetExceeded, match="rows needs 9 rows more"):
        Budget(MemoryLimit(rows=8)).account("rows").reserve(rows=9)


def test_bytes_do_not_count_against_rows_nor_rows_against_bytes() -> None:
    assert Budget(MemoryLimit(rows=8)).account("a").try_reserve(bytes_=10**12, rows=8)
    assert Budget(MemoryLimit(bytes=MIN_BYTES)).account("a").try_reserve(bytes_=MIN_BYTES, rows=10**12)


def test_giving_back_more_than_was_taken_is_an_error() -> None:
    with pytest.raises(AssertionError, match="released more"):
        Budget(MemoryLimit(rows=8)).account("a").release(rows=1)


@pytest.mark.parametrize("unit", ["bytes", "rows"])
def test_many_threads_never_exceed_the_limit(unit: str) -> None:
    limit = MemoryLimit(bytes=MIN_BYTES) if unit == "bytes" else MemoryLimit(rows=1000)
    most = limit.bytes if unit == "bytes" else limit.rows
    assert most is not None
    whole = Budget(limit)
    shares = whole.split(0.5)
    seen: list[int] = []

    def work(seed: int) -> None:
        rng, account = random.Random(seed), shares[seed % 2].account(str(seed))
        held: list[int] = []
        for _ in range(400):
            size = rng.randint(1, most // 4)
            if rng.random() < 0.6 and account.try_reserve(**{"bytes_" if unit == "bytes" else "rows": size}):
                held.append(size)
            elif held:
                account.release(**{"bytes_" if unit == "bytes" else "rows": held.pop()})
            seen.append(whole.used_bytes if unit == "bytes" else whole.used_rows)
        account.clear()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 <= min(seen) <= max(seen) <= most
    assert [(b.used_bytes, b.used_rows) for b in (whole, *shares)] == [(0, 0)] * 3
    peak = whole.peak_bytes if unit == "bytes" else whole.peak_rows
    assert most // 4 < peak <= most


class BudgetMachine(RuleBasedStateMachine):
    """A tree of budgets against plain sums."""

    accounts = Bundle("accounts")

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[Account, tuple[int, int]] = {}
        self.owners: dict[Account, list[Budget]] = {}
        self.budgets: list[tuple[Budget, list[Budget]]] = []

    @initialize(
        limit=st.builds(lambda n: MemoryLimit(rows=n), st.integers(8, 60))
        | st.builds(lambda n: MemoryLimit(bytes=n), st.integers(MIN_BYTES, MIN_BYTES + 50))
    )
    def start(self, limit: MemoryLimit) -> None:
        root = Budget(limit)
        self.budgets.append((root, [root]))

    @rule(which=st.integers(0, 10), fraction=st.floats(0, 1))
    def split(self, which: int, fraction: float) -> None:
        parent, chain = self.budgets[which % len(self.budgets)]
        if (parent.limit.rows or parent.limit.bytes or 0) > 2 and len(self.budgets) < 7:
            self.budgets += [(child, [child, *chain]) for child in parent.split(fraction)]

    @rule(target=accounts, which=st.integers(0, 10))
    def open_account(self, which: int) -> Account:
        budget, chain = self.budgets[which % len(self.budgets)]
        account = budget.account("a")
        self.model[account], self.owners[account] = (0, 0), chain
        return account

    def _sum(self, budget: Budget) -> tuple[int, int]:
        held = [self.model[account] for account, chain in self.owners.items() if budget in chain]
        return sum(b for b, _ in held), sum(r for _, r in held)

    @rule(account=accounts, bytes_=st.integers(0, MIN_BYTES), rows=st.integers(0, 40))
    def reserve(self, account: Account, bytes_: int, rows: int) -> None:
        fits = True
        for budget in self.owners[account]:
            used = self._sum(budget)
            if budget.limit.rows is not None:
                fits &= used[1] + rows <= budget.limit.rows
            else:
                fits &= used[0] + bytes_ <= (budget.limit.bytes or 0)
        assert account.try_reserve(bytes_, rows) == fits
        if fits:
            held = self.model[account]
            self.model[account] = (held[0] + bytes_, held[1] + rows)

    @rule(account=accounts, part=st.floats(0, 1))
    def release(self, account: Account, part: float) -> None:
        held = self.model[account]
        given_back = (int(held[0] * part), int(held[1] * part))
        account.release(*given_back)
        self.model[account] = (held[0] - given_back[0], held[1] - given_back[1])

    @rule(account=consumes(accounts))
    def clear(self, account: Account) -> None:
        account.clear()
        self.model[account] = (0, 0)

    @invariant()
    def books_agree(self) -> None:
        for account, held in self.model.items():
            assert (account.bytes, account.rows) == held
        for budget, _ in self.budgets:
            assert (budget.used_bytes, budget.used_rows) == self._sum(budget)
            assert budget.used_bytes <= budget.peak_bytes
            assert budget.used_rows <= budget.peak_rows
            assert budget.limit.rows is None or budget.peak_rows <= budget.limit.rows
            assert budget.limit.bytes is None or budget.peak_bytes <= budget.limit.bytes
            assert 0 <= budget.fraction_used <= 1


TestBudgetMachine = BudgetMachine.TestCase
TestBudgetMachine.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
