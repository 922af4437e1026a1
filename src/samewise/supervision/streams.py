"""The order in which examples are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from samewise.supervision.containers import Pairs, Triplets

Examples = TypeVar("Examples", Pairs, Triplets)


def passes(
    examples: Examples, n_passes: int, shuffle: bool, rng: np.random.RandomState
) -> Iterator[Examples]:
    """The examples, as often as asked, each time in their own order or in a new random one."""
    for _ in range(n_passes):
        yield examples[rng.permutation(len(examples))] if shuffle else examples
