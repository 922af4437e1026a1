"""Triplets: an anchor is closer to one row than to another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise._cards import rows_of, table
from samewise._typing import Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.supervision import clicks, sampling
from samewise.supervision.negatives import (
    check_form,
    check_form_of_items,
    harden,
    harden_graded,
    judged_part,
    semi_hard_part,
)
from samewise.supervision.row_numbers import RowNumbers, stacked
from samewise.supervision.supervision_checks import (
    checked_indices,
    checked_matrix,
    checked_weights,
    names_of_columns,
)


class Triplets(RowNumbers):
    """Triplets: the positive is closer to the anchor than the negative is.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The anchors (queries), and the items as well if `items` is None.
    anchor, positive, negative : int arrays of shape (n_triplets,)
        Row numbers: anchors in X; positives and negatives in `items` (or X).
    items : array or CSR matrix of shape (n_items, n_item_features), default=None
        A second matrix, whose number of features may differ from that of X.
    sample_weight : array of shape (n_triplets,), default=None
        How much each triplet counts; all equally by default.

    Examples
    --------
    >>> from samewise import Triplets
    >>> Triplets([[0.0], [1.0], [5.0]], anchor=[0], positive=[1], negative=[2])
    Triplets(1 triplets over 3 rows of 1 features)
    """

    __slots__ = ("X", "anchor", "feature_names", "items", "negative", "positive", "sample_weight")
    _members = ("anchor", "positive", "negative")

    X: Matrix
    anchor: Indices
    positive: Indices
    negative: Indices
    items: Matrix
    sample_weight: NDArray[np.float64] | None
    feature_names: tuple[str, ...] | None

    def __init__(
        self,
        X: Any,
        anchor: ArrayLike,
        positive: ArrayLike,
        negative: ArrayLike,
        items: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.X, self.feature_names = checked_matrix(X), names_of_columns(X)
        self.items = self.X if items is None else checked_matrix(items, "items")
        self.anchor = checked_indices(anchor, self.X.shape[0], "anchor")
        self.positive = checked_indices(positive, self.items.shape[0], "positive")
        self.negative = checked_indices(negative, self.items.shape[0], "negative")
        lengths = (len(self.anchor), len(self.positive), len(self.negative))
        if len(set(lengths)) > 1:
            raise InvalidInputError(
                "anchor, positive and negative must have the same length, one row number each for "
                f"every triplet. Got {lengths[0]}, {lengths[1]} and {lengths[2]}."
            )
        self.sample_weight = checked_weights(sample_weight, len(self.anchor), "triplets")

    def __repr__(self) -> str:
        n, d = self.X.shape
        text = f"Triplets({len(self)} triplets over {n} rows of {d} features"
        if self.items is not self.X:
            text += f" and {self.items.shape[0]} items of {self.items.shape[1]}"
        return text + ")"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        lines = [("triplets", f"{len(self):,}"), ("over", rows_of(*self.X.shape))]
        if self.items is not self.X:
            lines.append(("items", rows_of(*self.items.shape)))
        return table("Triplets", lines)

    @classmethod
    def from_labels(
        cls,
        X: Any,
        y: ArrayLike,
        n_triplets: int | None = None,
        *,
        negatives: str | float = "random",
        form: Form | None = None,
        merge_duplicates: bool = False,
        sample_weight: ArrayLike | None = None,
        random_state: Any = None,
    ) -> Triplets:
        """Triplets sampled from labeled examples.

        The anchor is uniform over the examples whose class has another member, the positive
        uniform over the rest of its class, the negative uniform over the other classes, or
        semi-hard.

        A learner soon ranks most random negatives right. Semi-hard ones (Schroff et al., FaceNet,
        2015) teach more for longer, above all if they are sampled again, between calls of
        `partial_fit`, with the learned `metric_` as the form. The hardest negatives of all are not
        offered: chosen once under the form a learner starts from, they make it collapse
        (``python -m experiments banking77``).

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Examples, one row each. Kept by reference: float32 and float64 are not copied.
        y : array of shape (n_samples,)
            Class labels of any kind.
        n_triplets : int, default=None
            How many, sampled with replacement; by default 20 per example and at most 100 000.
        negatives : {"random", "semi-hard"} or float, default="random"
            "semi-hard": of the candidates that are less close to the anchor than the positive is,
            the closest; if there are none, the least close candidate. The candidates are the
            members of other classes among 256 examples sampled for every 128 triplets; should there
            be none, the random negative stays. A number from 0 to 1: that part of the negatives is
            semi-hard, the rest random. Anchors and positives do not depend on it.
        form : Form, default=None
            What close means for "semi-hard"; the dot product by default.
        merge_duplicates : bool, default=False
            Take identical examples of one class as one, with their joint weight, and sample in an
            order that depends on the examples' values only: then neither repeating examples instead
            of weighting them nor reordering them makes a difference. Learners that are given labels
            sample so.
        sample_weight : array of shape (n_samples,), default=None
            A triplet's weight is the product of its members' weights, scaled to mean 1.
        random_state : int, RandomState instance or None, default=None
            Seed or generator for the sampling; pass an int for reproducible output.

        Returns
        -------
        Triplets
            The triplets, as row numbers into X.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from samewise import Triplets
        >>> Triplets.from_labels(*load_iris(return_X_y=True), n_triplets=100, random_state=0)
        Triplets(100 triplets over 150 rows of 4 features)
        """
        names, X = names_of_columns(X), checked_matrix(X)
        part = semi_hard_part(negatives)
        check_form(form, X)
        codes, weights, order = sampling.coded(X, y, sample_weight, merge_duplicates)
        rng = check_random_state(random_state)
        drawn = anchor, positive, negative = sampling.draw_triplets(codes, order, n_triplets, rng)
        if part > 0:
            negative = harden(X, codes, order, drawn, part, form, rng)
        weights = sampling.pair_weights(weights, anchor, positive, negative)
        triplets = cls(X, anchor, positive, negative, sample_weight=weights)
        triplets.feature_names = names
        return triplets

    @classmethod
    def from_neighbors(
        cls,
        X: Any,
        y: ArrayLike,
        n_triplets: int | None = None,
        *,
        n_neighbors: int = 3,
        n_impostors: int = 10,
        form: Form | None = None,
        merge_duplicates: bool = False,
        random_state: Any = None,
    ) -> Triplets:
        """Each example with its nearest of its own class and its nearest of the others.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Examples, one row each. Kept by reference: float32 and float64 are not copied.
        y : array of shape (n_samples,)
            Class labels of any kind.
        n_triplets : int, default=None
            At most so many, 100 000 by default: of more, a random part is kept.
        n_neighbors : int, default=3
            Nearest examples of its own class for each anchor.
        n_impostors : int, default=10
            Nearest examples of other classes for each anchor; each is in a triplet with each of the
            near ones.
        form : Form, default=None
            What near means; the Euclidean distance by default.
        merge_duplicates : bool, default=False
            Take identical examples of one class as one, and draw in an order that depends on the
            examples' values only. Learners that are given labels draw so.
        random_state : int, RandomState instance or None, default=None
            Seed or generator for the sampling; pass an int for reproducible output.

        Returns
        -------
        Triplets
            The triplets, as row numbers into X, in the order of the examples.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from samewise import Triplets
        >>> Triplets.from_neighbors(*load_iris(return_X_y=True), n_neighbors=2, n_impostors=3)
        Triplets(900 triplets over 150 rows of 4 features)
        """
        X = checked_matrix(X)
        codes, _, order = sampling.coded(X, y, None, merge_duplicates)
        found = sampling.nearest_triplets(X, codes, n_neighbors, n_impostors, form)
        most = sampling.AT_MOST if n_triplets is None else n_triplets
        chosen = sampling.some_of(found[0], order, most, check_random_state(random_state))
        return cls(X, *(rows[chosen] for rows in found))

    @classmethod
    def from_arrays(cls, triplets: ArrayLike, sample_weight: ArrayLike | None = None) -> Triplets:
        """Triplets from an array of three rows each.

        Parameters
        ----------
        triplets : array-like of shape (n_triplets, 3, n_features)
            Anchor, positive and negative of each triplet.
        sample_weight : array-like of shape (n_triplets,), default=None
            How much each triplet counts; all equally by default.

        Returns
        -------
        Triplets
            The triplets; rows that occur several times are stored once for each occurrence.

        Examples
        --------
        >>> from samewise import Triplets
        >>> Triplets.from_arrays([[[0.0], [1.0], [5.0]]])
        Triplets(1 triplets over 3 rows of 1 features)
        """
        X = stacked(triplets, 3, "triplets")
        anchor = np.arange(0, len(X), 3)
        return cls(X, anchor, anchor + 1, anchor + 2, sample_weight=sample_weight)

    @classmethod
    def from_grades(
        cls,
        X: Any,
        items: Any,
        grades: Any,
        n_triplets: int | None = None,
        *,
        judged: float = 0.5,
        negatives: str | float = "random",
        form: Form | None = None,
        random_state: Any = None,
    ) -> Triplets:
        """Triplets sampled from relevance grades: a higher grade must rank above a lower one.

        Thumbs are grades too, +1 and −1. Few items are judged for a query, so that among all items
        of a lower grade a thumb down would hardly ever be the negative; `judged` sees to it.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_queries, n_features)
            Queries, one row each.
        items : array or CSR matrix of shape (n_items, n_item_features)
            Items, one row each.
        grades : array or sparse matrix of shape (n_queries, n_items)
            Relevance of each item to each query. In a sparse matrix, items that are not stored
            have grade 0.
        n_triplets : int, default=None
            How many, sampled with replacement; by default 20 per query and at most 100 000. The
            query and the positive are uniform over the (query, item) entries of a positive grade,
            the negative uniform over the items of a lower grade for that query.
        judged : float, default=0.5
            The part of the negatives that is taken among the items that were judged for the query
            (entries that are stored, in an array those that are not 0), where some of a lower grade
            were. The others are taken among all items of a lower grade.
        negatives : {"random", "semi-hard"} or float, default="random"
            "semi-hard": of the candidates that are less close to the query than the positive is,
            the closest; if there are none, the random negative stays. The candidates are the items
            of a lower grade among 256 sampled for every 128 triplets, without near-duplicates of
            the positive, that is, items at least as close to it as the query is (where queries and
            items have the same features). A number from 0 to 1: that part is semi-hard.
            Negatives that were judged stay.
        form : Form, default=None
            What close means for "semi-hard", best the learned `metric_` of the moment; the dot
            product by default.
        random_state : int, RandomState instance or None, default=None
            Seed or generator for the sampling; pass an int for reproducible output.

        Returns
        -------
        Triplets
            The triplets, as row numbers into X and `items`.

        Examples
        --------
        >>> import numpy as np
        >>> from samewise import Triplets
        >>> grades = np.array([[2, 1, 0]])
        >>> t = Triplets.from_grades([[1.0]], np.eye(3), grades, n_triplets=50, random_state=0)
        >>> bool(np.all(grades[0, t.positive] > grades[0, t.negative]))
        True
        """
        of_judged, part = judged_part(judged), semi_hard_part(negatives)
        one = items is X
        X = checked_matrix(X)
        items = X if one else checked_matrix(items, "items")
        if part > 0:
            check_form_of_items(form, X, items)
        known = sampling.checked_grades(grades, X.shape[0], items.shape[0]).tocsr()
        rng = check_random_state(random_state)
        drawn, was_judged = sampling.draw_graded(known, n_triplets, of_judged, rng)
        anchor, positive, negative = drawn
        if part > 0:
            rest = np.flatnonzero(~was_judged)
            rows = np.sort(rng.permutation(rest)[: round(part * len(rest))])
            negative = harden_graded(X, items, known, drawn, rows, form, rng)
        return cls(X, anchor, positive, negative, items=items)

    @classmethod
    def from_clicks(
        cls,
        X: Any,
        items: Any,
        shown: ArrayLike,
        clicked: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Triplets:
        """Triplets from clicks: what was clicked is preferred to what was skipped above it.

        Who clicks on the third item has probably looked at the first two and passed them over
        (Joachims, 2002). Of items below the last click nothing is known, and a click on the first
        item of a list says nothing. The pairs are a biased sample: each of them contradicts the
        ranking that was shown, so they can teach, but not tell how good that ranking is.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_lists, n_features)
            The query of each list.
        items : array or CSR matrix of shape (n_items, n_item_features)
            Items, one row each.
        shown : int array of shape (n_lists, n_places)
            Row numbers of the items shown, from the top; −1 after the end of a shorter list.
        clicked : bool array of shape (n_lists, n_places)
            Whether the item in that place was clicked.
        sample_weight : array of shape (n_lists,), default=None
            A weight for each list, which its triplets get; all count equally by default.

        Returns
        -------
        Triplets
            One for each clicked item and each item above it that was not clicked, in the order of
            the lists; possibly none.

        Examples
        --------
        >>> import numpy as np
        >>> from samewise import Triplets
        >>> shown, clicked = [[4, 0, 2, 1]], [[False, False, True, False]]
        >>> t = Triplets.from_clicks([[1.0, 0.0]], np.eye(5, 2), shown, clicked)
        >>> t.positive.tolist(), t.negative.tolist()
        ([2, 2], [4, 0])
        """
        X, items = checked_matrix(X), checked_matrix(items, "items")
        lists = clicks.checked_lists(shown, clicked, X.shape[0], items.shape[0])
        weights = checked_weights(sample_weight, X.shape[0], "lists")
        anchor, positive, negative = clicks.skipped_above(*lists)
        weights = None if weights is None else weights[anchor]
        return cls(X, anchor, positive, negative, items=items, sample_weight=weights)
