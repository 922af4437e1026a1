"""Judged lists: row numbers of queries and of the items that were shown, and the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Indices, Matrix, Signs
from samewise.exceptions import InvalidInputError
from samewise.supervision.row_numbers import RowNumbers
from samewise.supervision.supervision_checks import (
    checked_indices,
    checked_matrix,
    checked_weights,
    parameter_array,
    read_only,
)
from samewise.supervision.triplets import Triplets


class Judgements(RowNumbers):
    """Lists of items that were shown for a query: each liked (+1), disliked (−1) or not judged (0).

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The queries, and the items as well if `items` is None. Kept by reference.
    query : int array of shape (n_lists,)
        The row of each list's query.
    shown : int array of shape (n_lists, n_shown)
        The rows of the shown items, in `items` (or X); none twice in a list.
    y : array of shape (n_lists, n_shown)
        +1, −1 or 0 for each shown item.
    items : array of shape (n_items, n_item_features), default=None
        A second matrix, whose number of features may differ from that of X.
    sample_weight : array of shape (n_lists,), default=None
        How much each list counts; all equally by default.

    See Also
    --------
    LiveAdapter : Learns from such lists, one at a time.
    Triplets : What `triplets` makes of them, for every learner of triplets.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Judgements
    >>> lists = Judgements(np.eye(4), query=[0], shown=[[1, 2, 3]], y=[[1, -1, 0]])
    >>> lists
    Judgements(1 lists, 2 of 3 shown items judged, over 4 rows of 4 features)
    >>> lists.triplets()
    Triplets(1 triplets over 4 rows of 4 features)
    """

    __slots__ = ("X", "items", "query", "sample_weight", "shown", "y")
    _members = ("query", "shown")

    X: Matrix
    query: Indices
    shown: Indices
    y: Signs
    items: Matrix
    sample_weight: NDArray[np.float64] | None

    def __init__(
        self,
        X: Any,
        query: ArrayLike,
        shown: ArrayLike,
        y: ArrayLike,
        items: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.X = checked_matrix(X)
        self.items = self.X if items is None else checked_matrix(items, "items")
        self.query = checked_indices(query, self.X.shape[0], "query")
        n = len(self.query)
        rows, answers = parameter_array(shown, "shown"), parameter_array(y, "y")
        if rows.ndim != 2 or len(rows) != n or rows.shape[1] == 0 or answers.shape != rows.shape:
            raise InvalidInputError(
                f"shown and y must have a row for each of the {n} lists, with as many answers as "
                f"shown items. Got the shapes {rows.shape} and {answers.shape}."
            )
        flat = checked_indices(rows.ravel(), self.items.shape[0], "shown")
        self.shown = read_only(flat.reshape(rows.shape))
        in_order = np.sort(self.shown, axis=1)
        if (in_order[:, 1:] == in_order[:, :-1]).any():
            raise InvalidInputError("shown must not have an item twice in a list.")
        if answers.dtype.kind not in "iuf" or not np.isin(answers, (-1, 0, 1)).all():
            raise InvalidInputError(
                "y must be +1 (liked), -1 (disliked) or 0 (not judged) for each shown item. Got "
                f"{list(dict.fromkeys(answers.ravel().tolist()))[:5]}."
            )
        self.y = read_only(answers.astype(np.int8))
        self.sample_weight = checked_weights(sample_weight, n, "lists")

    def __repr__(self) -> str:
        n, d = self.X.shape
        judged = int(np.count_nonzero(self.y))
        return (
            f"Judgements({len(self)} lists, {judged} of {self.y.size} shown items judged, over {n} "
            f"rows of {d} features)"
        )

    def triplets(self) -> Triplets:
        """Every pair of a liked and a disliked item of a list, as a triplet with its query.

        Returns
        -------
        Triplets
            List by list; a triplet has the weight of its list, shared among its pairs.
        """
        each, liked, disliked = np.nonzero((self.y[:, :, None] > 0) & (self.y[:, None, :] < 0))
        given = np.ones(len(self)) if self.sample_weight is None else self.sample_weight
        pairs = np.bincount(each, minlength=len(self))
        return Triplets(
            self.X,
            self.query[each],
            self.shown[each, liked],
            self.shown[each, disliked],
            None if self.items is self.X else self.items,
            sample_weight=given[each] / pairs[each],
        )
