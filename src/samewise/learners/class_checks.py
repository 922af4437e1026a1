"""Class labels of a fit: their numbers, small classes, and what nothing can be learned from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.supervision.supervision_checks import check_one_kind


def numbered(y: NDArray[Any], owner: str) -> tuple[NDArray[Any], Indices]:
    """The classes, and the class number of each row.

    Examples
    --------
    >>> import numpy as np
    >>> numbered(np.array(["b", "a", "b", "a"]), "RBS")
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1, 0]))
    """
    check_one_kind(y)
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"{owner} needs labels of at least two classes, to tell one from the other. Got one "
            "class."
        )
    if np.bincount(numbers).max() < 2:
        raise InvalidInputError(
            f"{owner} needs a class with at least two examples, to compare within it. Got "
            f"{len(classes)} classes of one example each."
        )
    return classes, numbers


def warn_of_small_classes(
    labels: Indices, k: int, stacklevel: int, weight: NDArray[np.float64] | None = None
) -> None:
    """Say, once for a fit, that some classes have fewer than k + 1 members, by weight."""
    sizes = np.bincount(labels, weight)
    small = np.count_nonzero(sizes <= k)
    if small:
        warnings.warn(
            f"{small} of {len(sizes)} classes have no more than n_neighbors={k} examples: their "
            "examples are compared with fewer neighbors, and those of classes with one example "
            "take no part. Lower n_neighbors, or leave these classes out, if that is not meant.",
            SamewiseWarning,
            stacklevel=stacklevel + 1,
        )


def unit(Z: Array, owner: str, stacklevel: int) -> Array:
    """Z/‖Z‖; where nothing was learned, Z = 0 and a warning.

    Examples
    --------
    >>> import numpy as np
    >>> unit(np.array([3.0, 4.0]), "RBS", 1)
    array([0.6, 0.8])
    """
    largest = np.max(np.abs(Z))
    if largest == 0:
        warnings.warn(
            f"{owner} has learned nothing: hits and misses are alike in every feature or, with "
            "psd='end', misses are nowhere farther than hits. All examples look the same under its "
            "metric_. Scale or change the features, raise n_neighbors, or set psd=None.",
            SamewiseWarning,
            stacklevel=stacklevel + 1,
        )
        return Z
    # By its largest entry first, whose square may be out of range.
    Z = Z / largest
    return Z / np.linalg.norm(Z)
