"""Examples, and metrics, in two dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form, MultiMetric
from samewise.plots._axes import CENTERED, COLORS, MARKERS, axes_for, form_for, plain
from samewise.supervision.supervision_checks import labeled_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTERS = 150
"""As many letters as the names in a picture may have in all without hiding the examples."""
_LETTER, _LINE = 0.019, 0.06
"""Width of a letter and height of a line, in widths of the picture, about."""
_SHIFT = 8
"""So many lines away from its place a name may stand, in each direction."""


def projection(form: Form | None, X: Matrix, y: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Examples in the two directions in which a form's embedding of them varies most.

    Distances in the embedding are those of the form; the picture keeps as much of them as two
    directions can. Every class has a marker of its own and its name at or near its median; of many
    or long names, those that find room.

    Parameters
    ----------
    form : Form or None
        With `embed`: a Mahalanobis distance, also of a kernel, or a generalized cosine. None is
        the Euclidean distance, and the picture PCA's.
    X : array or CSR matrix of shape (n, d)
        Examples, one row each.
    y : array of shape (n,)
        Class labels.
    ax : matplotlib Axes, default=None
        Axes to draw on; the current axes of pyplot by default.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from samewise.plots import projection
    >>> ax = projection(None, *load_iris(return_X_y=True), ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '2']
    """
    X, labels = labeled_rows(X, y)
    form = form_for(form, X.shape[1])
    embed = getattr(form, "embed", None)
    if embed is None:
        raise InvalidInputError(
            f"{type(form).__name__} has no embedding whose distances it measures; projection draws "
            "Mahalanobis distances and generalized cosines."
        )
    ax = axes_for(ax)
    _scatter(ax, _plane(embed(X)), labels)
    return ax


def class_ellipses(form: MultiMetric, X: Matrix, y: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """The metrics of a MultiMetric as ellipses around the means of their groups.

    In the plane of the first two principal components of X, each ellipse is what the local
    metric makes of a circle, {M^½u : ‖u‖ = 1} with M the metric in that plane: long where
    differences count. All have the same scale; the line inside is the principal axis.

    Parameters
    ----------
    form : MultiMetric
        The local metrics.
    X : array or CSR matrix of shape (n, d)
        Examples, one row each.
    y : array of shape (n,)
        Class labels: those of the form, if it has a metric for each class.
    ax : matplotlib Axes, default=None
        Axes to draw on; the current axes of pyplot by default.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    References
    ----------
    Weinberger and Saul, JMLR 10, 2009, figure 8.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from samewise import MultiMetric
    >>> from samewise.plots import class_ellipses
    >>> form = MultiMetric([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], classes=["a", "b"])
    >>> X = [[0.0, 0.0], [1.0, 0.0], [8.0, 1.0], [9.0, 2.0]]
    >>> ax = class_ellipses(form, X, ["a", "a", "b", "b"], ax=Figure().subplots())
    >>> len(ax.patches)
    2
    """
    if not isinstance(form, MultiMetric):
        raise InvalidInputError(
            "class_ellipses draws a MultiMetric, the metric_ of MultiMetricLMNN. Got "
            f"{type(form).__name__}."
        )
    from matplotlib.patches import Ellipse

    X, labels = labeled_rows(X, y)
    groups = form.groups_of(X, labels)
    if min(X.shape) < 2:
        raise InvalidInputError(
            f"class_ellipses needs two or more examples of two or more features. Got {X.shape}."
        )
    dense = X.toarray() if sp.issparse(X) else X
    pca = PCA(2, svd_solver="full").fit(dense)
    P, points = pca.components_, pca.transform(dense)
    ax = axes_for(ax)
    _scatter(ax, points, labels, faint=True)
    drawn = np.unique(groups).tolist()
    axes = {}
    for g in drawn:
        L = form.components[g] @ P.T
        eigenvalues, vectors = np.linalg.eigh(L.T @ L)
        axes[g] = np.sqrt(np.maximum(eigenvalues, 0)), vectors
    longest = max(float(lengths[1]) for lengths, _ in axes.values())
    # The largest ellipse is about as wide as a part of the picture; the scale is shared by all.
    scale = 0.18 * float(np.ptp(points, axis=0).max()) / longest if longest > 0 else 1.0
    for n, g in enumerate(drawn):
        lengths, vectors = axes[g]
        (short, long), way = scale * lengths, vectors[:, 1]
        center, color = points[groups == g].mean(axis=0), COLORS[n % len(COLORS)]
        angle = float(np.degrees(np.arctan2(way[1], way[0])))
        ellipse = Ellipse((center[0], center[1]), 2 * long, 2 * short, angle=angle, fill=False)
        ellipse.set(edgecolor=color, linewidth=2)
        ax.add_patch(ellipse)
        ends = center + np.outer([-long, long], way)
        ax.plot(*ends.T, color=color, linewidth=2)
    return ax


def _plane(E: Array) -> Array:
    """The two principal components of embedded rows; a second one of zeros if there is only one."""
    centered = E - E.mean(axis=0)
    _, _, V = np.linalg.svd(centered, full_matrices=False)
    V = V[:2]
    # Signs are arbitrary: the largest entry is positive, so that pictures are reproducible.
    V = V * np.sign(V[np.arange(len(V)), np.abs(V).argmax(axis=1)])[:, None]
    points = centered @ V.T
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def crowded(y: NDArray[Any]) -> bool:
    """Whether the names of all classes would hide the examples."""
    return sum(len(str(c)) for c in np.unique(y)) > _LETTERS


def _with_room(names: list[str], at: Array, points: Array) -> dict[int, Array]:
    """Where names can stand without touching each other: at their places, or a little beside."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = float((high - low).max())
    sizes = span * np.array([[_LETTER * (len(name) + 1), _LINE] for name in names])
    grid = np.stack(np.meshgrid(*2 * [np.arange(-_SHIFT, _SHIFT + 1)]), axis=-1).reshape(-1, 2)
    steps = grid[np.argsort((grid**2).sum(axis=1), kind="stable")] * (span * _LINE)
    found: dict[int, Array] = {}
    # Short ones first: more of them find room.
    for n in sorted(range(len(names)), key=lambda n: len(names[n])):
        # A name that is wider than the picture stands in its middle.
        room = np.maximum(high - low - sizes[n], 0) / 2
        places = np.clip(at[n] + steps, (low + high) / 2 - room, (low + high) / 2 + room)
        taken = np.array(list(found.values())).reshape(-1, 2)
        needed = (sizes[list(found)] + sizes[n]) / 2 - 1e-9 * span
        free = (np.abs(places[:, None] - taken) >= needed).any(axis=2).all(axis=1)
        if free.any():
            found[n] = places[free.argmax()]
    return found


def _scatter(ax: Axes, points: Array, y: NDArray[Any], faint: bool = False) -> None:
    from matplotlib import colormaps

    classes = np.unique(y)
    colors = colormaps["tab10" if len(classes) <= 10 else "tab20"]
    look: dict[str, Any] = {"s": 12, "linewidths": 0, "alpha": 0.35 if faint else 0.65}
    for n, c in enumerate(classes):
        marker, color = MARKERS[n % len(MARKERS)], colors(n % colors.N)
        # The name by which an SVG file has them.
        ax.scatter(*points[y == c].T, marker=marker, color=color, gid=f"class-{n}", **look)
    names = [str(c) for c in classes]
    medians = np.array([np.median(points[y == c], axis=0) for c in classes])
    for n, (x, height) in sorted(_with_room(names, medians, points).items()):
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "alpha": 0.85, "linewidth": 0}
        ax.text(x, height, plain(names[n]), weight="bold", color="black", bbox=box, **CENTERED)
    # Distances are what the picture is about: one unit is as long across as up.
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
