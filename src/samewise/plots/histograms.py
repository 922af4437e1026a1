"""How margins, and the distances of similar and dissimilar pairs, are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from samewise._typing import Array, Matrix
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import Form
from samewise.plots._axes import COLORS, LINES, axes_for, check_count, form_for, quiet_frame
from samewise.search import margins
from samewise.supervision import Pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def margin_histogram(
    form: Form | None,
    X: Matrix,
    y: ArrayLike,
    n_neighbors: int = 1,
    *,
    base: Form | None = None,
    bins: int = 40,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Histogram of `samewise.margins`, with the share of margins that are not positive.

    Margins are divided by their mean size, so that forms of different scales can be drawn on the
    same axes. To the right of the dashed line examples are closer to their own class; with
    n_neighbors=1 those to its left are what the nearest neighbor gets wrong.

    Parameters
    ----------
    form : Form or None
        The metric; None is the Euclidean distance.
    X : array or CSR matrix of shape (n, d)
        Examples, one row each.
    y : array of shape (n,)
        Class labels.
    n_neighbors : int, default=1
        Neighbors of the own class, and as many of other classes, whose closeness is compared.
    base : Form, default=None
        The form under which these neighbors are found; `form` itself by default.
    bins : int, default=40
        Number of bars.
    label : str, default=None
        For the legend.
    ax : matplotlib Axes, default=None
        Axes to draw on; the current axes of pyplot by default.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010, figures 4.3–4.26.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from samewise.plots import margin_histogram
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = margin_histogram(None, X, y, label="Euclidean", ax=Figure().subplots())
    >>> ax.get_legend().get_texts()[0].get_text()
    'Euclidean: 4.0 % not positive'
    """
    check_count(bins, "bins")
    values = margins(form, X, y, n_neighbors, base=base)
    values = values[np.isfinite(values)]
    if not len(values):
        raise DegenerateInputError(
            "No example has another one of its class, so there are no margins to draw."
        )
    wrong = float(np.mean(values <= 0))
    values = values / (np.abs(values).mean() or 1.0)
    ax = axes_for(ax)
    n = len(ax.patches)
    name = f"{'margins' if label is None else label}: {100 * wrong:.1f} % not positive"
    look = {"histtype": "step", "linestyle": LINES[n % len(LINES)], "linewidth": 1.5}
    _draw_shares(ax, values, bins, edgecolor=COLORS[n % len(COLORS)], label=name, **look)
    if n == 0:
        ax.axvline(0, color="0.5", linestyle="--", linewidth=1)
    ax.set(xlabel="margin, in units of its mean size", ylabel="examples (%)")
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return quiet_frame(ax)


def pair_histograms(
    form: Form | None,
    pairs: Pairs,
    *,
    threshold: float | None = None,
    bins: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Histograms of the values of a form, for similar and for dissimilar pairs.

    The less the two overlap, the better "are these the same?" can be answered. For before and
    after, draw the same pairs twice: under None, and under what was learned.

    Parameters
    ----------
    form : Form or None
        None is the Euclidean distance.
    pairs : Pairs
        Of both kinds. Each histogram shows shares of its own kind.
    threshold : float, default=None
        Drawn as a line. On the scale of closeness, as `Verifier.threshold_`.
    bins : int, default=40
        Number of bars of each histogram.
    ax : matplotlib Axes, default=None
        Axes to draw on; the current axes of pyplot by default.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from samewise import Pairs
    >>> from samewise.plots import pair_histograms
    >>> pairs = Pairs([[0.0], [1.0], [5.0], [7.0]], left=[0, 2, 0, 1], right=[1, 3, 2, 3],
    ...               y=[1, 1, -1, -1])
    >>> ax = pair_histograms(None, pairs, threshold=-3.0, bins=5, ax=Figure().subplots())
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('distance', ['similar pairs', 'dissimilar pairs', 'threshold'])
    """
    check_count(bins, "bins")
    if not isinstance(pairs, Pairs):
        raise InvalidInputError(
            f"pair_histograms draws Pairs; got {type(pairs).__name__}. Use Pairs.from_labels or "
            "Pairs.from_arrays."
        )
    similar = pairs.y > 0
    if similar.all() or not similar.any():
        raise InvalidInputError(
            "pair_histograms compares similar with dissimilar pairs; got only one of the two "
            "kinds. Give pairs of both."
        )
    form = form_for(form, pairs.X.shape[1])
    values = form.pairs(pairs.X[pairs.left], pairs.X[pairs.right])
    edges = np.histogram_bin_edges(values, bins).tolist()
    ax = axes_for(ax)
    kinds = (
        ("similar pairs", similar, COLORS[0], None),
        ("dissimilar pairs", ~similar, COLORS[1], "///"),
    )
    for name, of_kind, color, hatch in kinds:
        look = {"histtype": "stepfilled", "edgecolor": color, "facecolor": color}
        filled = {"alpha": 0.45} if hatch is None else {"fill": False, "hatch": hatch}
        _draw_shares(ax, values[of_kind], edges, label=name, **look, **filled)
    if threshold is not None:
        at = -threshold if form.is_distance else threshold
        ax.axvline(at, color="0.5", linestyle="--", label="threshold")
    ax.set_xlabel("distance" if form.is_distance else "similarity")
    ax.set_ylabel("pairs (%)")
    ax.legend(frameon=False)
    return quiet_frame(ax)


def _draw_shares(ax: Axes, values: Array, bins: Any, **look: Any) -> None:
    """A histogram in percent of the values."""
    ax.hist(values, bins, weights=np.full(len(values), 100 / len(values)), **look)
