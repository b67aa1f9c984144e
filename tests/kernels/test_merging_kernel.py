"""Merging two orders into one."""

from __future__ import annotations

import numpy as np
import pytest

from earlyjoin.kernels.merging import merged_order


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(("total", "cut"), [(0, 0), (1, 0), (1, 1), (50, 20), (50, 0), (50, 50), (1000, 999)])
def test_a_merged_order_is_that_of_a_stable_sort(dtype: type, total: int, cut: int) -> None:
    words = np.random.default_rng(total + cut).integers(0, 10, total).astype(dtype)
    first = np.argsort(words[:cut], kind="stable")
    second = cut + np.argsort(words[cut:], kind="stable")
    assert merged_order(words, first, second).tolist() == np.argsort(words, kind="stable").tolist()
