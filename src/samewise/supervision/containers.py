"""Pairs and triplets: row numbers into a matrix, never copies of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise._typing import Indices, Matrix, Signs
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
from samewise.supervision.supervision_checks import (
    checked_indices,
    checked_matrix,
    checked_signs,
    checked_weights,
    names_of_columns,
    read_only,
)


class RowNumbers:
    """Row numbers into a matrix, and what goes with each: pairs or triplets."""

    __slots__: tuple[str, ...] = ()
    _members: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self._members[0]))

    def __getitem__(self, rows: slice | ArrayLike) -> Self:
        """The chosen ones (a slice, row numbers or a mask), over the same matrices."""
        rows = _chosen(rows, type(self).__name__.lower())
        chosen = object.__new__(type(self))
        for name in self.__slots__:
            values = getattr(self, name)
            whole = name in ("X", "feature_names", "items") or values is None
            setattr(chosen, name, values if whole else read_only(values[rows]))
        return chosen

    @property
    def shape(self) -> tuple[int, int]:
        """Their number and that of their members: lets scikit-learn split them."""
        return len(self), len(self._members)


Examples = TypeVar("Examples", bound=RowNumbers)


class Pairs(RowNumbers):
    """Pairs of rows that are the same (+1) or not the same (−1).

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The examples. Kept by reference: float32 and float64 are not copied.
    left, right : int arrays of shape (n_pairs,)
        Row numbers of the two members of each pair.
    y : array of shape (n_pairs,)
        +1 for similar, −1 for dissimilar.
    sample_weight : array of shape (n_pairs,), default=None
        How much each pair counts. A learner multiplies the cost of the pair's slack (its C) with
        it; a pair of weight 0 is passed over.

    Examples
    --------
    >>> from samewise import Pairs
    >>> pairs = Pairs([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], left=[0, 0], right=[1, 2], y=[1, -1])
    >>> pairs
    Pairs(2 pairs, 1 similar, over 3 rows of 2 features)
    >>> pairs.differences()
    array([[-1.,  0.],
           [-5., -5.]])
    """

    __slots__ = ("X", "feature_names", "left", "right", "sample_weight", "y")
    _members = ("left", "right")

    X: Matrix
    left: Indices
    right: Indices
    y: Signs
    sample_weight: NDArray[np.float64] | None
    feature_names: tuple[str, ...] | None

    def __init__(
        self,
        X: Any,
        left: ArrayLike,
        right: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.X, self.feature_names = checked_matrix(X), names_of_columns(X)
        self.left = checked_indices(left, self.X.shape[0], "left")
        self.right = checked_indices(right, self.X.shape[0], "right")
        if len(self.left) != len(self.right):
            raise InvalidInputError(
                "left and right must have the same length, one row number each for every pair. "
                f"Got {len(self.left)} and {len(self.right)}."
            )
        self.y = checked_signs(y, len(self.left))
        self.sample_weight = checked_weights(sample_weight, len(self.left), "pairs")

    def __repr__(self) -> str:
        n, d = self.X.shape
        similar = int(np.count_nonzero(self.y == 1))
        return f"Pairs({len(self)} pairs, {similar} similar, over {n} rows of {d} features)"

    def differences(self) -> Matrix:
        """Differences v = x − x′ of every pair.

        Returns
        -------
        array or CSR matrix of shape (n_pairs, n_features)
            CSR where X is.
        """
        return self.X[self.left] - self.X[self.right]

    @classmethod
    def from_labels(
        cls,
        X: Any,
        y: ArrayLike,
        n_pairs: int | None = None,
        *,
        strategy: str = "balanced",
        n_neighbors: int = 5,
        form: Form | None = None,
        merge_duplicates: bool = False,
        sample_weight: ArrayLike | None = None,
        random_state: Any = None,
    ) -> Pairs:
        """Pairs sampled from labeled examples: two of one class are similar, of two classes not.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Examples, one row each. Kept by reference: float32 and float64 are not copied.
        y : array of shape (n_samples,)
            Class labels of any kind.
        n_pairs : int, default=None
            How many; by default 20 per example and at most 100 000. Pairs are distinct; where
            fewer exist than were asked for, all of them are taken, with a warning.
        strategy : {"balanced", "random", "nearest"}, default="balanced"
            "balanced": half similar, half dissimilar. "random": uniformly from all pairs.
            "nearest": for each example its `n_neighbors` nearest of its own class and as many
            of the others, in the order of the examples; `n_pairs` then keeps a
            random part.
        n_neighbors : int, default=5
            For "nearest": neighbors of each kind.
        form : Form, default=None
            For "nearest": what near means; the Euclidean distance by default.
        merge_duplicates : bool, default=False
            Take identical examples of one class as one, with their joint weight, and draw in an
            order that depends on the examples' values only: then neither repeating examples
            instead of weighting them nor reordering them makes a difference. Learners that are
            given labels draw so.
        sample_weight : array of shape (n_samples,), default=None
            A pair's weight is the product of its members' weights, scaled to mean 1.
        random_state : int, RandomState instance or None, default=None
            Seed or generator for the sampling; pass an int for reproducible output.

        Returns
        -------
        Pairs
            The pairs, as row numbers into X.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from samewise import Pairs
        >>> Pairs.from_labels(*load_iris(return_X_y=True), n_pairs=100, random_state=0)
        Pairs(100 pairs, 50 similar, over 150 rows of 4 features)
        """
        names, X = names_of_columns(X), checked_matrix(X)
        codes, weights, order = sampling.coded(X, y, sample_weight, merge_duplicates)
        left, right = sampling.draw_pairs(
            X, codes, order, n_pairs, strategy, n_neighbors, form, random_state
        )
        same = np.where(codes[left] == codes[right], 1, -1).astype(np.int8)
        drawn = cls(X, left, right, same, sampling.pair_weights(weights, left, right))
        drawn.feature_names = names
        return drawn

    @classmethod
    def from_arrays(
        cls, pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Pairs:
        """Pairs from an array of two rows each and labels ±1.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The two members of each pair.
        y : array-like of shape (n_pairs,)
            +1 for similar, −1 for dissimilar.
        sample_weight : array-like of shape (n_pairs,), default=None
            How much each pair counts; all equally by default.

        Returns
        -------
        Pairs
            The pairs; rows that occur several times are stored once for each occurrence.

        Examples
        --------
        >>> from samewise import Pairs
        >>> Pairs.from_arrays([[[0.0, 0.0], [1.0, 0.0]]], [1])
        Pairs(1 pairs, 1 similar, over 2 rows of 2 features)
        """
        X = stacked(pairs, 2, "pairs")
        left = np.arange(0, len(X), 2)
        return cls(X, left, left + 1, y, sample_weight)

    @classmethod
    def from_grades(cls, X: Any, grades: Any, relevant: float = 1.0) -> Pairs:
        """Every judged pair: similar where the grade reaches `relevant`, dissimilar below.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            Examples, one row each. Kept by reference: float32 and float64 are not copied.
        grades : sparse matrix of shape (n_rows, n_rows)
            Its stored entries are the judgments (a stored 0 is "not relevant"); what is not stored
            was not judged.
        relevant : float, default=1.0
            The lowest grade that means "the same".

        Returns
        -------
        Pairs
            A pair for each judgment.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from samewise import Pairs
        >>> grades = sp.coo_array(([2.0, 0.0], ([0, 0], [1, 2])), shape=(3, 3))
        >>> Pairs.from_grades([[0.0], [1.0], [9.0]], grades).y.tolist()
        [1, -1]
        """
        X = checked_matrix(X)
        judged = sampling.checked_grades(grades, X.shape[0], X.shape[0])
        keep = judged.row != judged.col
        y = np.where(judged.data[keep] >= relevant, 1, -1)
        return cls(X, judged.row[keep], judged.col[keep], y)


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


def _chosen(rows: Any, name: str) -> Any:
    """A slice, row numbers or a mask; scikit-learn adds an ellipsis for the other axes."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]
    if not isinstance(rows, slice):
        rows = np.asarray(rows)
        if not rows.size:
            # An empty list is an array of floats.
            rows = rows.astype(np.intp)
        if rows.ndim != 1 or rows.dtype.kind not in "biu":
            raise InvalidInputError(
                f"Choose {name} by a slice, a mask or an array of whole numbers."
            )
    return rows


def stacked(arrays: Any, members: int, name: str) -> Matrix:
    """(n, members, d) as (n·members, d) without a copy where the memory allows it."""
    if sp.issparse(arrays):
        raise InvalidInputError(
            f"An array of {name} must be dense with shape (n, {members}, d). Got a sparse matrix; "
            "hold the rows in one matrix and name them by row numbers instead."
        )
    arrays = np.asarray(arrays)
    if arrays.ndim != 3 or arrays.shape[1] != members:
        raise InvalidInputError(
            f"An array of {name} must have shape (n_{name}, {members}, n_features). Got shape "
            f"{arrays.shape}."
        )
    return checked_matrix(arrays.reshape(-1, arrays.shape[2]), name)


def passes(
    examples: Examples, n_passes: int, shuffle: bool, rng: np.random.RandomState
) -> Iterator[Examples]:
    """The examples, as often as asked, each time in their own order or in a new random one."""
    for _ in range(n_passes):
        yield examples[rng.permutation(len(examples))] if shuffle else examples
