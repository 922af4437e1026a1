"""RELIEF: features weighted by how they tell misses from hits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError
from samewise.forms import Mahalanobis, NormalizedBilinear
from samewise.kernels.manhattan import manhattan
from samewise.kernels.pairwise import row_slices
from samewise.learners.attributes import Attribute, FormOf, Labels, Values
from samewise.learners.class_checks import numbered, unit, warn_of_small_classes
from samewise.learners.constraints import COUNT
from samewise.learners.dense_rows import check_scale, typed
from samewise.learners.learner import MapLearner
from samewise.learners.neighbors.similarity_learner import ConditionalMap, nearest_psd, similarity
from samewise.search.hits import hits_and_misses
from samewise.supervision.supervision_checks import parameter_array

_BLOCK_BYTES = 8 * 2**20
Matrix64 = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class Relief(ConditionalMap, MapLearner):
    """RELIEF and ReliefF: one weight for each feature, or a full matrix.

    For J examples x with their nearest hit H, of the same class, and nearest miss M, of another,

        w_l ← w_l − diff(l, x, H)/J + diff(l, x, M)/J,   diff = |x_l − x'_l|/(max_l − min_l),

    where nearest is by Σ_l diff. With k > 1 neighbors, diff is averaged over them. The full matrix
    (Sun and Wu) has mmᵀ and hhᵀ in the place of diff, with m = x − M, h = x − H in the same units.

    Parameters
    ----------
    n_neighbors : int, default=1
        Number k of neighbors. In a class of k examples or fewer, an example has all others as hits,
        and the class gives all its members as misses; an example alone in its class takes no part.
        A warning says so.
    structure : {"diagonal", "full"}, default="diagonal"
        Kind of matrix to learn; "diagonal" is one weight for each feature. "full" is a symmetric
        matrix.
    misses : {"each", "any"}, default="each"
        "each": k misses from each other class c, which counts by its part of the other classes,
        P(c)/(1 − P(class of x)), as ReliefF has it. "any": the k nearest of all other classes, as
        RELIEF has it. With two classes they are the same.
    form : {"distance", "similarity"}, default="distance"
        What is made of the weights. "distance": √(Σ_l w_l diff²), or with a full matrix
        √((x − x')ᵀW(x − x')) in the units of diff, as RELIEF means them; weights below 0 are 0.
        "similarity": xᵀAx'/N(x, x') of the rows as they are, with A = diag(w) or W: how the thesis
        uses them beside `RBS`.
    psd : {"end"} or None, default="end"
        When positive semi-definiteness is restored. "end": weights below 0 become 0, and W is
        projected on the positive semi-definite matrices, which a distance needs. None: never.
    normalizer : {"cosine", "dice", "jaccard"} or None, default="cosine"
        Normalizer N of the similarity, see `NormalizedBilinear`. Only for form="similarity". Zero
        rows have the similarity 0 to every row.
    n_draws : int, default=None
        Number J of examples, sampled with replacement. By default each example is taken once.
    discrete : "none", or array of feature numbers or of booleans, default="none"
        Features without an order, for which diff is 0 or 1. Only for structure="diagonal". They
        count so in `weights_`; `metric_` still compares values as numbers, which is the same for
        two values. Encode features with more by ones and zeros.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    weights_ : array of shape (n_features,)
        w, from −1 to 1, before anything is clipped; for a full matrix, its diagonal. A constant
        feature has weight 0.
    matrix_ : array of shape (n_features, n_features)
        With structure="full": Σ mmᵀ − Σ hhᵀ over J, before it is projected.
    ranges_ : array of shape (n_features,)
        max_l − min_l; 1 for constant features, and for discrete ones.
    metric_ : Mahalanobis or NormalizedBilinear
        The learned form, with weights or matrix of norm 1 in the units of diff.
    components_ : array of shape (rank, n_features_in_)
        The map L of `transform`, only with form="distance". For weights: the features that count,
        by decreasing weight, scaled.
    classes_ : array of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    RBS : A similarity from targets and impostors in closed form.
    LMNN : A full distance with large margins to impostors.

    Notes
    -----
    Rows must be dense: Manhattan distances of sparse rows gain nothing from zeros. All pairs are
    compared exactly, in blocks, in float64.

    References
    ----------
    Kira and Rendell, *A practical approach to feature selection*, 1992; Kononenko, *Estimating
    attributes: analysis and extensions of RELIEF*, 1994 (ReliefF); Sun and Wu, *A RELIEF based
    feature extraction algorithm*, 2008. Qamar, *Generalized Cosine and Similarity Metrics*, thesis,
    Grenoble 2010, equations 2.7–2.10 and section 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Relief
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.uniform(size=(100, 3))
    >>> X[:, 1] += y
    >>> int(Relief(n_neighbors=5).fit(X, y).weights_.argmax())
    1
    """

    metric_: Mahalanobis | NormalizedBilinear = field(init=False)

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((Mahalanobis, NormalizedBilinear)),
        "classes_": Labels(),
        "ranges_": Values(("d",)),
        "weights_": Values(("d",)),
        "matrix_": Values(("d", "d"), optional=True),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "misses": [StrOptions({"each", "any"})],
        "form": [StrOptions({"distance", "similarity"})],
        "psd": [StrOptions({"end"}), None],
        "n_draws": [COUNT, None],
        "discrete": [StrOptions({"none"}), "array-like"],
    }

    n_neighbors: int = 1
    _: KW_ONLY
    structure: str = "diagonal"
    misses: str = "each"
    form: str = "distance"
    psd: str | None = "end"
    normalizer: str | None = "cosine"
    n_draws: int | None = None
    discrete: Any = "none"
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Examples.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : Relief
            The fitted learner.
        """
        with unchanged_if_refused(self):
            self._fit(X, y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_scale(X)
        self.classes_, labels = numbered(y, "Relief")
        if self.form == "distance" and not self.psd:
            raise InvalidInputError(
                "A distance has no negative weights. Got form='distance' with psd=None; set psd "
                "to 'end', or form to 'similarity'."
            )
        discrete = self._discrete(X.shape[1])
        U, self.ranges_ = _scaled(X, discrete)
        rows, times = self._draws(len(labels))
        hits, misses = hits_and_misses(
            lambda asked, order: _blocks(_halved(U, discrete), asked, order),
            labels,
            min(self.n_neighbors, len(labels)),
            queries=rows,
            each_class=self.misses == "each",
        )
        Z = self._sum(U, discrete, *_pairs(rows, times, hits, misses, labels))
        warn_of_small_classes(labels, self.n_neighbors, stacklevel=4)
        self.__dict__.pop("matrix_", None)
        self.weights_ = Z if Z.ndim == 1 else Z.diagonal().copy()
        if Z.ndim == 2:
            self.matrix_ = Z
        self.metric_ = self._form(Z, X.dtype)

    def _discrete(self, d: int) -> NDArray[np.bool_]:
        """Which features have no order."""
        chosen = np.zeros(d, dtype=bool)
        if isinstance(self.discrete, str):
            return chosen
        given = parameter_array(self.discrete, "discrete")
        right = given.shape == (d,) if given.dtype == bool else given.dtype.kind in "iu"
        if given.size and not (
            right
            and given.ndim == 1
            and (given.dtype == bool or 0 <= given.min() <= given.max() < d)
        ):
            raise InvalidInputError(
                f"discrete must be 'none', {d} booleans, or feature numbers from 0 to {d - 1}. Got "
                f"{self.discrete!r} instead."
            )
        chosen[given if given.size else []] = True
        if chosen.any() and self.structure == "full":
            raise InvalidInputError(
                "structure='full' needs differences with a sign, which discrete features do not "
                "have. Encode them by ones and zeros, or use structure='diagonal'."
            )
        return chosen

    def _draws(self, n: int) -> tuple[Indices, Indices]:
        """The examples that are taken, and how often each."""
        if self.n_draws is None:
            return np.arange(n), np.ones(n, dtype=np.intp)
        random = check_random_state(self.random_state)
        return np.unique(random.randint(n, size=self.n_draws), return_counts=True)

    def _sum(
        self,
        U: Matrix64,
        discrete: NDArray[np.bool_],
        left: Indices,
        right: Indices,
        weight: Matrix64,
    ) -> Matrix64:
        """Σ weight · diff over pairs, or Σ weight · vvᵀ."""
        d = U.shape[1]
        Z = np.zeros(d if self.structure == "diagonal" else (d, d))
        for at in row_slices(len(left), 8 * d, _BLOCK_BYTES):
            v = U[left[at]] - U[right[at]]
            if self.structure == "full":
                Z += (v * weight[at, None]).T @ v
                continue
            np.abs(v, out=v)
            v[:, discrete] = v[:, discrete] != 0
            Z += weight[at] @ v
        return Z

    def _form(self, Z: Array, dtype: Any) -> Mahalanobis | NormalizedBilinear:
        A = unit(nearest_psd(Z) if self.psd else Z, "Relief", stacklevel=5)
        if self.form == "similarity":
            return similarity(A.astype(dtype), self.normalizer)
        A = np.diag(A) if A.ndim == 1 else A
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            M = A / np.outer(self.ranges_, self.ranges_)
        return Mahalanobis(typed(M, dtype))

    @property
    def _why_no_map(self) -> str:
        return "" if self.form == "distance" else "Relief has transform only with form='distance'."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _scaled(X: Array, discrete: NDArray[np.bool_]) -> tuple[Matrix64, Matrix64]:
    """Rows in units of max_l − min_l, from 0 to 1, and these ranges."""
    U = X.astype(np.float64)
    lowest = U.min(axis=0)
    ranges = U.max(axis=0) - lowest
    ranges[(ranges == 0) | discrete] = 1
    U -= lowest
    U /= ranges
    return U, ranges


def _halved(U: Matrix64, discrete: NDArray[np.bool_]) -> Matrix64:
    """Columns whose distances add up diff: ones and zeros, halved, for discrete features."""
    columns = [U[:, ~discrete]]
    for column in U[:, discrete].T:
        columns.append((column[:, None] == np.unique(column)) / 2)
    return np.concatenate(columns, axis=1)


def _blocks(U: Matrix64, asked: Indices, order: Indices) -> Iterator[tuple[slice, Matrix64]]:
    columns = np.ascontiguousarray(U[order].T)
    for part in row_slices(len(asked), 8 * len(order), _BLOCK_BYTES):
        D = manhattan(np.ascontiguousarray(U[asked[part]]), columns)
        yield part, np.negative(D, out=D)


def _pairs(
    rows: Indices, times: Indices, hits: Indices, misses: Indices, labels: Indices
) -> tuple[Indices, Indices, Matrix64]:
    """Examples, their neighbors, and what each pair counts: −1/J over hits, 1/J over misses."""
    part_of = np.bincount(labels) / len(labels)
    share = times / times.sum()
    has_hits = hits[:, 0] >= 0
    lists = [(hits, -share)]
    if misses.ndim == 2:
        lists.append((misses, share))
    else:
        others = 1 - part_of[labels[rows]]
        lists += [(misses[:, c], share * part_of[c] / others) for c in range(len(part_of))]
    left, right, weight = [], [], []
    for found, count in lists:
        there = (found >= 0) & has_hits[:, None]
        i, q = np.nonzero(there)
        left.append(rows[i])
        right.append(found[i, q])
        weight.append(count[i] / there.sum(axis=1)[i])
    return np.concatenate(left), np.concatenate(right), np.concatenate(weight)
