"""The order in which examples are shown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from samewise.supervision.containers import Pairs


def passes(
    pairs: Pairs, n_passes: int, shuffle: bool, rng: np.random.RandomState
) -> Iterator[Pairs]:
    """The pairs, as often as asked, each time in their own order or in a new random one."""
    for _ in range(n_passes):
        yield pairs[rng.permutation(len(pairs))] if shuffle else pairs
