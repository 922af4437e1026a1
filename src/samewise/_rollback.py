"""What is refused changes nothing, and what is being changed is not looked at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from weakref import WeakKeyDictionary

import numpy as np

OF_CALLBACKS = {"_callback_fit_ctx", "_skl_callbacks_to_teardown"}
"""What scikit-learn itself takes away, after it has told callbacks that a fit has ended."""

# Not attributes: an estimator is copied, pickled and compared by its attributes.
_locks: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()


class Interrupted(KeyboardInterrupt):
    """Ctrl-C that has waited for a sound state: there is nothing to put back."""


def alone(owner: object) -> AbstractContextManager[object]:
    """One thread at a time; the same thread may enter again.

    Who learns is inside from the beginning to the end, and so is who reads what is being learned:
    a reader meets the state before or after, never one between.
    """
    # Looked up first: a lock is made once, and setdefault alone would make one each time.
    return _locks.get(owner) or _locks.setdefault(owner, threading.RLock())


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
    except Interrupted:
        raise
    except BaseException:
        # Put back before the rest is taken away: another thread never misses an attribute.
        vars(owner).update(attributes)
        for name in vars(owner).keys() - attributes.keys() - OF_CALLBACKS:
            del vars(owner)[name]
        if random is not None and numbers is not None:
            random.set_state(numbers)
        raise
