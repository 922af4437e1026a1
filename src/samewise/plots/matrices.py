"""What is in the matrix of a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.forms import Form, GeneralizedCosine, Mahalanobis
from samewise.plots._axes import axes_for, draw_line, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED, _LETTERS = 40, 16
"""Most features whose names fit beside a matrix, and the most letters of a name."""


def spectrum(form: Form, *, label: str | None = None, ax: Axes | None = None) -> Axes:
    """How the weight of a form is spread over directions, strongest first.

    The shares λ_i/Σλ of the eigenvalues of M (of a bilinear form: the singular values of W). The
    Euclidean distance has a flat spectrum; a steep one means that few directions matter.

    Parameters
    ----------
    form : Form
        With one matrix.
    label : str, default=None
        For a legend, with several forms on the same axes.
    ax : matplotlib Axes, default=None
        Axes to draw on; the current axes of pyplot by default.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from samewise import Mahalanobis
    >>> from samewise.plots import spectrum
    >>> ax = spectrum(Mahalanobis(np.diag([3.0, 1.0, 0.0])), ax=Figure().subplots())
    >>> ax.lines[0].get_ydata()
    array([75., 25.,  0.])
    """
    shares = eigenvalue_shares(form)
    names = "direction, strongest first", "share of the eigenvalues (%)"
    return draw_line(ax, np.arange(1, len(shares) + 1), 100 * shares, names, label)


def matrix_heatmap(
    form: Form, *, feature_names: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """The entries of M or W as a picture: lighter is larger, and the bar beside it gives the scale.

    In gray too. Where there are negative entries, zero is the middle of the scale. Of a large
    matrix, the half percent of the largest entries may lie beyond the scale, which then has
    pointed ends.

    Parameters
    ----------
    form : Form
        With one matrix.
    feature_names : sequence of str, default=None
        Written along a square matrix of up to 40 features.
    ax : matplotlib Axes, default=None
        Axes to draw on; the current axes of pyplot by default.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from samewise import Bilinear
    >>> from samewise.plots import matrix_heatmap
    >>> ax = matrix_heatmap(Bilinear([[2.0, -1.0], [0.0, 1.0]]), ax=Figure().subplots())
    >>> ax.images[0].get_clim()
    (-2.0, 2.0)
    """
    W = _matrix(form)
    if feature_names is not None and (W.shape[0] != W.shape[1] or len(feature_names) != len(W)):
        raise InvalidInputError(
            f"feature_names must be one name for each row and column of the matrix, whose shape is "
            f"{W.shape}. Got {len(feature_names)} names."
        )
    ax = axes_for(ax)
    # A few huge entries must not make all others look like zero.
    largest = float(np.quantile(np.abs(W), 0.995, method="higher")) or 1.0
    image = ax.imshow(W, cmap="cividis", vmin=-largest if W.min() < 0 else 0.0, vmax=largest)
    ax.figure.colorbar(image, ax=ax, extend="both" if np.abs(W).max() > largest else "neither")
    if feature_names is not None and len(W) <= _NAMED:
        names = [plain(_cut(str(name))) for name in feature_names]
        size = "small" if len(W) <= _NAMED // 2 else "x-small"
        ax.set_xticks(range(len(W)), names, rotation=90, fontsize=size)
        ax.set_yticks(range(len(W)), names, fontsize=size)
    return ax


def eigenvalue_shares(form: Form) -> Array:
    """λ_i/Σλ of all directions of the features, largest first, zeros included.

    Examples
    --------
    >>> from samewise import Bilinear
    >>> eigenvalue_shares(Bilinear([[0.0, 3.0], [1.0, 0.0]]))
    array([0.75, 0.25])
    """
    if isinstance(form, Mahalanobis | GeneralizedCosine):
        weights: Array = np.zeros(form.n_features_in)
        weights[: len(form.eigenvalues)] = form.eigenvalues[: len(weights)]
    else:
        weights = np.linalg.svd(_matrix(form), compute_uv=False)
    total = weights.sum()
    return weights / total if total > 0 else weights


def _matrix(form: Form) -> Array:
    matrix = getattr(form, "matrix", None)
    if isinstance(form, Form) and len(form.spaces) > 1:
        raise InvalidInputError(
            "A MultiMetric has a matrix for each group; draw those of form.spaces[0], "
            "form.spaces[1], and so on."
        )
    if matrix is not None:
        return np.asarray(matrix)
    raise InvalidInputError(
        f"A form with a matrix is needed, such as the metric_ of a learner. Got "
        f"{type(form).__name__}."
    )


def _cut(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
