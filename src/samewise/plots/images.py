"""Images and their neighbors, before and after learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Array, Matrix
from samewise.decide import KNNClassifier
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.plots._axes import CENTERED, axes_for, check_count
from samewise.supervision.supervision_checks import labeled_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RED, _GAP = "#c62828", 0.12
"""Color of what is wrong, and the room between two images of height 1."""


def neighbor_grid(
    before: Form | None,
    after: Form | None,
    X: Matrix,
    y: ArrayLike,
    queries: Matrix,
    y_queries: ArrayLike,
    *,
    image_shape: tuple[int, ...],
    n_neighbors: int = 3,
    titles: tuple[str, str] = ("before", "after"),
    ax: Axes | None = None,
) -> Axes:
    """Queries with their nearest neighbors under two forms; wrong ones are crossed out.

    A line of the grid is a query, its neighbors under `before`, and those under `after`, nearest
    first. A neighbor of another class than the query has a dashed frame and a cross.

    Parameters
    ----------
    before, after : Form or None
        None is the Euclidean distance.
    X : array or CSR matrix of shape (n, d)
        The stored images, flattened.
    y : array of shape (n,)
        Their labels.
    queries : array or CSR matrix of shape (m, d)
        The images whose neighbors are shown, flattened.
    y_queries : array of shape (m,)
        Their labels.
    image_shape : (height, width) or (height, width, 3)
        Shape of one image.
    n_neighbors : int, default=3
        Neighbors of each query under each form.
    titles : (str, str), default=("before", "after")
        What to call the two forms.
    ax : matplotlib Axes, default=None
        Axes to draw on; the current axes of pyplot by default.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    References
    ----------
    Weinberger and Saul, JMLR 10, 2009, figures 4 and 5.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> from samewise import LMNN
    >>> from samewise.plots import neighbor_grid
    >>> X, y = load_digits(return_X_y=True)
    >>> form = LMNN().fit(X[:200], y[:200]).metric_
    >>> ax = neighbor_grid(None, form, X[:200], y[:200], X[200:204], y[200:204],
    ...                    image_shape=(8, 8), ax=Figure().subplots())
    >>> len(ax.images)
    28
    """
    check_count(n_neighbors, "n_neighbors")
    X, labels = labeled_rows(X, y)
    Q, wanted = labeled_rows(queries, y_queries, ("queries", "y_queries"))
    if Q.shape[1] != X.shape[1]:
        raise InvalidInputError(
            f"queries have {Q.shape[1]} features, but X has {X.shape[1]}; give images of one size."
        )
    nearest = [
        KNNClassifier(form, n_neighbors).fit(X, labels).kneighbors(Q, return_distance=False)
        for form in (before, after)
    ]
    asked, limits = as_images(Q, image_shape), value_limits(X)
    ax = axes_for(ax)
    width = image_shape[1] / image_shape[0]
    column, between = width + _GAP, 0.6
    starts = [width + between + n * (n_neighbors * column + between) for n in range(2)]
    for line, image in enumerate(asked):
        _put(ax, image, limits, (0.0, line, width))
        for start, rows in zip(starts, nearest, strict=True):
            shown = as_images(X[rows[line]], image_shape)
            for n, (row, neighbor) in enumerate(zip(rows[line], shown, strict=True)):
                wrong = bool(labels[row] != wanted[line])
                _put(ax, neighbor, limits, (start + n * column, line, width), wrong)
    middle = (n_neighbors * column - _GAP) / 2
    places = width / 2, *(start + middle for start in starts)
    for x, title in zip(places, ("query", *titles), strict=True):
        ax.text(x, 0.35, title, **CENTERED)
    right = starts[1] + n_neighbors * column - _GAP
    ax.set(xlim=(-0.1, right + 0.1), ylim=(-len(asked) * (1 + _GAP), 0.7), aspect="equal")
    ax.set_axis_off()
    return ax


def _put(
    ax: Axes,
    image: Array,
    limits: tuple[float, float],
    place: tuple[float, int, float],
    wrong: bool = False,
) -> None:
    """Draw an image of height 1 at a place: its left edge, its line, and its width."""
    from matplotlib.patches import Rectangle

    (least, most), (x, line, width) = limits, place
    top = -line * (1 + _GAP)
    shown = np.clip((image - least) / (most - least), 0, 1)
    extent = (x, x + width, top - 1, top)
    ax.imshow(shown, cmap="gray", vmin=0, vmax=1, extent=extent, interpolation="nearest")
    if wrong:
        frame = Rectangle((x, top - 1), width, 1, fill=False)
        frame.set(edgecolor=_RED, linewidth=2.5, linestyle="--")
        ax.add_patch(frame)
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "linewidth": 0}
        ax.text(x + 0.86 * width, top - 0.14, "✗", color=_RED, size=9, bbox=box, **CENTERED)


def as_images(X: Matrix, image_shape: tuple[int, ...]) -> Array:
    """Flat rows as images: (n, height, width) or (n, height, width, 3).

    Examples
    --------
    >>> import numpy as np
    >>> as_images(np.arange(8.0).reshape(2, 4), (2, 2))[1]
    array([[4., 5.],
           [6., 7.]])
    """
    shape = check_image_shape(image_shape, X.shape[1])
    dense: NDArray[Any] = X.toarray() if sp.issparse(X) else np.asarray(X)
    return dense.reshape(len(dense), *shape)


def check_image_shape(image_shape: Any, n_features: int) -> tuple[int, ...]:
    """The shape of images with so many values."""
    shape = tuple(image_shape)
    right = len(shape) in (2, 3) and all(isinstance(n, int | np.integer) and n > 0 for n in shape)
    if not right or shape[2:] not in ((), (3,)) or int(np.prod(shape)) != n_features:
        raise InvalidInputError(
            f"image_shape must be (height, width) or (height, width, 3) with {n_features} values "
            f"in all, the features of a row. Got {image_shape!r}."
        )
    return shape


def value_limits(X: Matrix) -> tuple[float, float]:
    """The least and the largest value, which differ."""
    least, most = float(X.min()), float(X.max())
    return least, most if most > least else least + 1.0
