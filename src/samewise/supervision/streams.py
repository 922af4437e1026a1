"""The order in which examples are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from samewise.supervision.containers import Pairs, Triplets

Told = TypeVar("Told", Pairs, Triplets)


def passes(told: Told, n_passes: int, shuffle: bool, rng: np.random.RandomState) -> Iterator[Told]:
    """The examples, as often as asked, each time in their own order or in a new random one."""
    for _ in range(n_passes):
        yield told[rng.permutation(len(told))] if shuffle else told
