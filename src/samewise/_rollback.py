"""What is refused changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def unchanged_if_refused(
    owner: object, random: np.random.RandomState | None = None
) -> Iterator[None]:
    """Whatever raises an error inside leaves attributes and random numbers as they were.

    The random numbers are `random`, or those that `owner` was given as its random_state.
    Attributes are put back, but what they refer to is not copied: inside, replace objects rather
    than change them.
    """
    attributes = vars(owner).copy()
    given = attributes.get("random_state")
    if random is None and isinstance(given, np.random.RandomState):
        random = given
    numbers = None if random is None else random.get_state(legacy=False)
    try:
        yield
    except BaseException:
        vars(owner).clear()
        vars(owner).update(attributes)
        if random is not None and numbers is not None:
            random.set_state(numbers)
        raise
