"""HIER: similarity by class probabilities and a known hierarchy of the classes."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning

from samewise._rollback import unchanged_if_refused
from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import PosteriorSimilarity
from samewise.learners.attributes import Attribute, Count, FormOf, Labels
from samewise.learners.batch.batch_learner import FromLabels
from samewise.learners.class_checks import numbered
from samewise.learners.constraints import POSITIVE
from samewise.supervision.supervision_checks import parameter_array


@dataclass(eq=False, repr=False)
class HIER(FromLabels):
    """Hierarchical semantic indexing: rows are similar if their classes are near in a hierarchy.

    The similarity of x and x' is the expected similarity of their classes,

        s(x, x') = p(x)ᵀS p(x'),   S_ij = 1 − h(i, j)/h,

    where p(x) are the class probabilities by a logistic regression, h(i, j) is the height of the
    lowest common ancestor of the classes i and j, and h that of the root. The height of a node is
    the length of the longest way down to a leaf, so that S_ii = 1, and S_ij = 0 where nothing but
    the root is common.

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): it compares classes that a logistic regression
    predicts; many sets are not linear.

    Parameters
    ----------
    hierarchy : mapping, array of shape (n_classes, n_classes) or None, default=None
        The parent of each node, by name: every label is a leaf, and the root alone has no parent.
        Or S itself, in the order of the sorted labels. None is S = I: only a class itself is
        similar to it.
    C : float, default=1.0
        Inverse strength of the penalty of the logistic regression.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-4
        Tolerance of the stopping rule. It is that of the logistic regression.

    Attributes
    ----------
    metric_ : PosteriorSimilarity
        The learned similarity.
    classes_ : array of shape (n_classes,)
        The class labels, in the order of `metric_.similarity`.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    SNN : A similarity learned from pairs, without known classes.
    PosteriorSimilarity : The form that is learned.

    Notes
    -----
    The logistic regression is scikit-learn's, with all classes at once (softmax). Features should
    be in comparable units. Sparse rows stay sparse; float32 rows are worked on in float32.

    References
    ----------
    J. Deng, A. C. Berg, L. Fei-Fei: Hierarchical semantic indexing for large scale image retrieval.
    CVPR 2011.

    Examples
    --------
    >>> from samewise import HIER
    >>> X = [[0.0], [0.2], [1.0], [1.2], [5.0], [5.2]]
    >>> y = ["cat", "cat", "dog", "dog", "car", "car"]
    >>> parents = {"cat": "animal", "dog": "animal", "animal": "thing", "car": "thing"}
    >>> hier = HIER(parents, C=1e3).fit(X, y)
    >>> hier.classes_
    array(['car', 'cat', 'dog'], dtype='<U3')
    >>> hier.metric_.similarity
    array([[1. , 0. , 0. ],
           [0. , 1. , 0.5],
           [0. , 0.5, 1. ]])
    >>> cat, dog, car = hier.metric_.closeness([[0.1]], [[0.1], [1.1], [5.1]])[0]
    >>> bool(cat > dog > 0.3 > car)
    True
    """

    metric_: PosteriorSimilarity = field(init=False)

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((PosteriorSimilarity,)),
        "classes_": Labels(),
        "n_iter_": Count(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hierarchy": [Mapping, "array-like", None],
        "tol": [POSITIVE],
    }

    hierarchy: Mapping[Any, Any] | ArrayLike | None = None
    _: KW_ONLY
    C: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-4

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            The examples.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : object
            The fitted learner.
        """
        with unchanged_if_refused(self):
            X, y = self._examples(X, y)
            self.classes_, labels = numbered(np.asarray(y), "HIER")
            S = class_similarity(self.hierarchy, self.classes_)
            W, b = self._posteriors(X, labels)
            self.metric_ = PosteriorSimilarity(W, b, S.astype(X.dtype))
        return self

    def _posteriors(self, X: Matrix, labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """W and b of softmax(Wx + b)."""
        # Imported where it is needed: it loads a large part of scikit-learn.
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=self.C, max_iter=self.max_iter, tol=self.tol)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, labels)
        self.n_iter_ = int(np.max(model.n_iter_))
        if self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"The logistic regression of HIER has not converged in {self.n_iter_} iterations. "
                "Scale the features, allow more (max_iter), or lower C.",
                ConvergenceWarning,
                stacklevel=4,
            )
        W, b = model.coef_, model.intercept_
        if len(W) == 1:
            # Of two classes, scikit-learn has the weights of the second; the first's are zero.
            W, b = np.concatenate([np.zeros_like(W), W]), np.concatenate([np.zeros_like(b), b])
        return W, b


def class_similarity(hierarchy: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """S of the classes: S_ij = 1 − h(i, j)/h by a hierarchy, a matrix as it is given, or I.

    Examples
    --------
    >>> import numpy as np
    >>> class_similarity({1: "odd", 3: "odd", "odd": "any", 2: "any"}, np.array([1, 2, 3]))
    array([[1. , 0. , 0.5],
           [0. , 1. , 0. ],
           [0.5, 0. , 1. ]])
    """
    n = len(classes)
    if hierarchy is None:
        return np.eye(n)
    if not isinstance(hierarchy, Mapping):
        return _given_similarity(hierarchy, n)
    ways = [_way_up(label, hierarchy) for label in classes.tolist()]
    heights = _heights(hierarchy)
    for way in ways:
        if heights[way[0]]:
            raise InvalidInputError(
                f"Every label must be a leaf of the hierarchy, but {way[0]!r} is a parent. Put a "
                "leaf below it and relabel its examples, or leave them out."
            )
    root = ways[0][-1]
    S = np.eye(n)
    for i, way in enumerate(ways):
        above = set(way)
        for j in range(i):
            lowest = next(node for node in ways[j] if node in above)
            S[i, j] = S[j, i] = 1 - heights[lowest] / heights[root]
    return S


def _given_similarity(matrix: Any, n: int) -> NDArray[np.float64]:
    S = parameter_array(matrix, "hierarchy", np.float64).copy()
    if S.shape != (n, n) or not np.isfinite(S).all():
        raise InvalidInputError(
            f"A hierarchy given as a matrix must be finite, of shape ({n}, {n}): a similarity for "
            f"each two of the {n} classes, in the order of the sorted labels. Got shape {S.shape}."
        )
    return S


def _way_up(node: Hashable, hierarchy: Mapping[Any, Any]) -> list[Any]:
    """A node, its parent, and so on, up to the root."""
    if node not in hierarchy:
        raise InvalidInputError(
            f"The label {node!r} is not in the hierarchy. Give its parent: "
            f"hierarchy[{node!r}] = ..."
        )
    way, met = [node], {node}
    while way[-1] in hierarchy:
        parent = hierarchy[way[-1]]
        if parent is None:
            raise InvalidInputError(
                f"The parent of {way[-1]!r} is None. The root is the node without an entry: leave "
                f"{way[-1]!r} out of the hierarchy if it is the root, or give its parent."
            )
        if parent in met:
            raise InvalidInputError(
                f"The hierarchy has a cycle: {parent!r} is above itself. Remove one of the parents "
                "on the way."
            )
        way.append(parent)
        met.add(parent)
    return way


def _heights(hierarchy: Mapping[Any, Any]) -> dict[Any, int]:
    """The length of the longest way down from each node; refused if there is more than one root."""
    heights: dict[Any, int] = {}
    roots = []
    for node in hierarchy:
        way = _way_up(node, hierarchy)
        if way[-1] not in roots:
            roots.append(way[-1])
        for height, above in enumerate(way):
            heights[above] = max(heights.get(above, 0), height)
    if len(roots) > 1:
        raise InvalidInputError(
            f"The hierarchy must have one root, but {', '.join(map(repr, roots[:5]))} have no "
            "parent. Give them a common one."
        )
    return heights
