"""The one gate through which a user's supervision comes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from samewise._typing import Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.supervision.pairs import Pairs
from samewise.supervision.quadruplets import Quadruplets
from samewise.supervision.row_numbers import RowNumbers
from samewise.supervision.supervision_checks import checked_indices, parameter_array
from samewise.supervision.triplets import Triplets


def is_labeled(X: Any) -> bool:
    """Whether X is a plain matrix of examples, whose y are class labels."""
    if isinstance(X, RowNumbers):
        return False
    return sp.issparse(X) or np.ndim(X if hasattr(X, "shape") else parameter_array(X, "X")) != 3


def as_pairs(
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    learner: str,
    draw: Callable[[Any, Any, Any], Pairs],
) -> Pairs:
    """What was given to `fit` as Pairs.

    Parameters
    ----------
    X : Pairs, array of shape (n_pairs, 2, n_features), or matrix of labeled examples
    y : None or the pairs' own y with Pairs; ±1 with an array; class labels with examples
    sample_weight : weights of the pairs (with an array) or of the examples
    learner : str
        Who asks, for the messages.
    draw : callable (X, y, sample_weight) → Pairs
        How pairs are sampled from labeled examples; called only when everything else is right.
    """
    if isinstance(X, RowNumbers) and not isinstance(X, Pairs):
        raise InvalidInputError(
            f"{learner} learns from pairs. Got {type(X).__name__}, which say what is closer but "
            "not what is the same; give Pairs, an array of shape (n, 2, d) with labels ±1, or "
            "labeled examples."
        )
    if isinstance(X, Pairs):
        if y is not None or sample_weight is not None:
            check_own_labels(X, y, sample_weight)
        pairs = X
    elif is_labeled(X):
        if y is None:
            raise InvalidInputError(
                f"{learner} requires y to be passed, but the target y is None: give class labels "
                "with examples, ±1 with an array of pairs, or Pairs."
            )
        return draw(X, y, sample_weight)
    else:
        if y is None:
            raise InvalidInputError(
                f"{learner} requires y to be passed with an array of pairs, but the target y is "
                "None: give +1 (similar) or -1 (dissimilar) for each pair."
            )
        pairs = Pairs.from_arrays(X, y, sample_weight)
    _check_rows(left=(pairs.left, pairs.X), right=(pairs.right, pairs.X))
    if not len(pairs.y):
        raise InvalidInputError(f"{learner} needs at least one pair. Got none.")
    return pairs


def check_own_labels(pairs: Pairs, y: Any, sample_weight: Any = None) -> None:
    """Refuse labels and weights beside Pairs, except their own y, which stratified folds need."""
    if sample_weight is not None or not (y is None or np.array_equal(y, pairs.y)):
        raise InvalidInputError(
            "Pairs carry their own labels and weights: call fit(pairs) without y and "
            "sample_weight, and give those to Pairs(...) instead."
        )


def as_triplets(
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    learner: str,
    draw: Callable[[Any, Any, Any], Triplets],
) -> Triplets:
    """What was given to `fit` as Triplets.

    Parameters
    ----------
    X : Triplets, array of shape (n_triplets, 3, n_features), or matrix of labeled examples
    y : class labels with examples, None otherwise
    sample_weight : weights of the triplets (with an array) or of the examples
    learner : str
        Who asks, for the messages.
    draw : callable (X, y, sample_weight) → Triplets
        How triplets are sampled from labeled examples; called only when everything else is right.
    """
    if isinstance(X, Pairs):
        raise InvalidInputError(
            f"{learner} learns from triplets. Got Pairs, which say what is the same but not what "
            "is closer; give Triplets, an array of shape (n, 3, d), or labeled examples."
        )
    if isinstance(X, Quadruplets):
        raise InvalidInputError(
            f"{learner} learns from triplets. Got Quadruplets, whose pairs need not share an "
            "example; give Triplets, or use LSML or SCML."
        )
    if isinstance(X, RowNumbers) and not isinstance(X, Triplets):
        raise InvalidInputError(
            f"{learner} learns from triplets. Got {type(X).__name__}; give judgements.triplets()."
        )
    if is_labeled(X):
        if y is None:
            raise InvalidInputError(
                f"{learner} requires y to be passed, but the target y is None: give class labels "
                "with examples, or Triplets."
            )
        return draw(X, y, sample_weight)
    if y is not None:
        raise InvalidInputError(
            "Triplets have no labels, their order says it all: call fit(triplets) without y."
        )
    if isinstance(X, Triplets) and sample_weight is not None:
        raise InvalidInputError(
            "Triplets carry their own weights: give sample_weight to Triplets(...) instead."
        )
    triplets = X if isinstance(X, Triplets) else Triplets.from_arrays(X, sample_weight)
    items = triplets.items
    _check_rows(
        anchor=(triplets.anchor, triplets.X),
        positive=(triplets.positive, items),
        negative=(triplets.negative, items),
    )
    if len(triplets) == 0:
        raise InvalidInputError(f"{learner} needs at least one triplet. Got none.")
    return triplets


def as_quadruplets(
    X: Any, y: ArrayLike | None, *, learner: str, draw: Callable[[Any, Any], Quadruplets]
) -> Quadruplets:
    """What was given to `fit` of a learner of comparisons, as Quadruplets.

    Parameters
    ----------
    X : Quadruplets, Triplets, array of shape (n, 4, d) or (n, 3, d), or labeled examples
    y : class labels with examples, None otherwise
    learner : str
        Who asks, for the messages.
    draw : callable (X, y) → Quadruplets
        How they are sampled from labeled examples; called only when everything else is right.
    """
    if is_labeled(X):
        if y is None:
            raise InvalidInputError(
                f"{learner} requires y to be passed, but the target y is None: give class labels "
                "with examples, or Quadruplets or Triplets."
            )
        return draw(X, y)
    found = comparisons(X, learner)
    if y is not None:
        raise InvalidInputError(
            "Quadruplets and Triplets have no labels, their order says it all: call fit without y."
        )
    return found


def comparisons(X: Any, learner: str) -> Quadruplets:
    """Quadruplets, triplets or an array of either, as Quadruplets; at least one."""
    if is_labeled(X) or (isinstance(X, RowNumbers) and not isinstance(X, Quadruplets | Triplets)):
        raise InvalidInputError(
            f"{learner} is about what is closer: give Quadruplets, Triplets, or an array of shape "
            "(n, 4, n_features) or (n, 3, n_features). Got "
            f"{type(X).__name__ if isinstance(X, RowNumbers) else f'shape {np.shape(X)}'}."
        )
    if not isinstance(X, RowNumbers):
        X = np.asarray(X)
        X = (Triplets if X.shape[1] == 3 else Quadruplets).from_arrays(X)
    if isinstance(X, Triplets):
        X = Quadruplets.from_triplets(
            as_triplets(X, None, None, learner=learner, draw=Triplets.from_labels)
        )
    if len(X) == 0:
        raise InvalidInputError(f"{learner} needs at least one quadruplet. Got none.")
    _check_rows(**{name: (getattr(X, name), X.X) for name in X._members})
    return cast(Quadruplets, X)


def _check_rows(**members: tuple[Indices, Matrix]) -> None:
    """Refuse row numbers outside of their matrix: they are shared, and may have been changed."""
    for name, (rows, X) in members.items():
        # Without their signs, negative numbers are large ones.
        if rows.view(f"u{rows.itemsize}").max(initial=0) >= X.shape[0] and len(rows):
            checked_indices(rows, X.shape[0], name)


def as_members(pairs: Any, *, owner: str) -> Pairs:
    """Pairs to be judged, whose own labels do not matter: Pairs, or an array of shape (n, 2, d)."""
    if isinstance(pairs, Pairs):
        _check_rows(left=(pairs.left, pairs.X), right=(pairs.right, pairs.X))
        return pairs
    if isinstance(pairs, RowNumbers) or is_labeled(pairs):
        got = type(pairs).__name__ if isinstance(pairs, RowNumbers) else f"shape {np.shape(pairs)}"
        raise InvalidInputError(
            f"{owner} judges pairs: give Pairs or an array of shape (n_pairs, 2, n_features). Got "
            f"{got}."
        )
    pairs = np.asarray(pairs)
    return Pairs.from_arrays(pairs, np.ones(len(pairs), dtype=np.int8))
