"""What happens while a learner learns, and how good the first k found items are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise.exceptions import InvalidInputError
from samewise.plots._axes import axes_for, check_count, draw_line, line_style, quiet_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


def learning_curve(
    learner: Any, *, n_windows: int = 40, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """The loss of a fitted learner along its way.

    For a batch learner, the loss after each iteration. For an online learner, the mean hinge loss
    of each of `n_windows` stretches of the stream, every example judged when it arrived.

    Parameters
    ----------
    learner : fitted learner
        With `history_`.
    n_windows : int, default=40
        Stretches of the stream; only for online learners.
    label : str, default=None
        For a legend, with several learners on the same axes.
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
    >>> from samewise import PassiveAggressive
    >>> from samewise.plots import learning_curve
    >>> learner = PassiveAggressive(random_state=0).fit(*load_iris(return_X_y=True))
    >>> ax = learning_curve(learner, n_windows=10, ax=Figure().subplots())
    >>> ax.get_ylabel(), len(ax.lines[0].get_xdata())
    ('mean hinge loss', 10)
    """
    history = _history(learner)
    if "rounds" in history:
        x, y = windows(history, "loss", n_windows)
        names = "examples seen", "mean hinge loss"
    else:
        x, y = np.arange(1.0, len(history["loss"]) + 1), history["loss"]
        names = "iteration", "loss"
    return draw_line(ax, x, y, names, label)


def predictive_error_curve(
    learner: Any, *, n_windows: int | None = None, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """The share of examples an online learner judged wrongly when they arrived.

    Parameters
    ----------
    learner : fitted online learner
        With `history_`: PassiveAggressive, POLA, OASIS, the AROMAs, SiLA, GCosLA.
    n_windows : int, default=None
        The error of each of so many stretches of the stream. By default the error over all
        examples so far, mistakes(t)/t, as in the study of passive–aggressive learners.
    label : str, default=None
        For a legend, with several learners on the same axes.
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
    >>> from samewise import PassiveAggressive
    >>> from samewise.plots import predictive_error_curve
    >>> learner = PassiveAggressive(random_state=0).fit(*load_iris(return_X_y=True))
    >>> ax = predictive_error_curve(learner, ax=Figure().subplots())
    >>> wrong = learner.n_mistakes_ / learner.n_seen_
    >>> abs(float(ax.lines[0].get_ydata()[-1]) - 100 * wrong) < 1e-9
    True
    """
    history = _history(learner)
    if "rounds" not in history:
        raise InvalidInputError(
            f"{type(learner).__name__} learns in batch and judges no examples as they arrive; use "
            "learning_curve for its loss."
        )
    if n_windows is None:
        x, y = history["rounds"], history["mistakes"] / history["rounds"]
    else:
        x, y = windows(history, "mistakes", n_windows)
    return draw_line(ax, x, 100 * y, ("examples seen", "judged wrongly (%)"), label)


def rank_curve(
    updates: ArrayLike,
    forms: Sequence[Any],
    *,
    tol: float = 1e-9,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The effective rank of M over the updates of a learner: eigenvalues above tol·λ_max.

    Parameters
    ----------
    updates : array of shape (n,)
        Updates made so far, `n_updates_`, ascending.
    forms : sequence of n Mahalanobis forms
        The `metric_` of the learner at each of these moments.
    tol : float, default=1e-9
        Eigenvalues above `tol` times the largest count.
    label : str, default=None
        For a legend, with several learners on the same axes.
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
    >>> from samewise import POLA, Pairs
    >>> from samewise.plots import rank_curve
    >>> stream = Pairs.from_labels(*load_iris(return_X_y=True), n_pairs=40, random_state=0)
    >>> learner, updates, forms = POLA(), [], []
    >>> for start in range(0, 40, 10):
    ...     learner.partial_fit(stream[start : start + 10])
    ...     updates.append(learner.n_updates_)
    ...     forms.append(learner.metric_)
    POLA()...
    >>> rank_curve(updates, forms, ax=Figure().subplots()).get_ylabel()
    'rank of M'
    """
    x = np.asarray(updates, dtype=np.float64)
    if x.ndim != 1 or len(x) != len(forms) or not len(x):
        raise InvalidInputError(
            "rank_curve needs one form for each number of updates. Got "
            f"{len(forms)} forms and updates of shape {x.shape}."
        )
    strange = [form for form in forms if not hasattr(form, "effective_rank")]
    if strange:
        raise InvalidInputError(
            "rank_curve draws the rank of Mahalanobis forms, the metric_ of a learner of pairs. "
            f"Got {type(strange[0]).__name__}."
        )
    ranks = np.array([form.effective_rank(tol) for form in forms], dtype=np.float64)
    return draw_line(ax, x, ranks, ("updates", "rank of M"), label)


def precision_curves(
    precisions: Mapping[str, Mapping[int, float]], *, ax: Axes | None = None
) -> Axes:
    """Precision among the first k found items, over k, one curve for each method.

    Parameters
    ----------
    precisions : mapping of names to mappings of k to precision
        As in `Measured.precision`: ``{m.name: m.precision for m in measured}``.
    ax : matplotlib Axes, default=None
        Axes to draw on; the current axes of pyplot by default.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from samewise.plots import precision_curves
    >>> curves = {"before": {1: 0.9, 10: 0.7}, "after": {1: 0.95, 10: 0.9}}
    >>> ax = precision_curves(curves, ax=Figure().subplots())
    >>> [line.get_label() for line in ax.lines]
    ['before', 'after']
    """
    if not precisions or not all(precisions.values()):
        raise InvalidInputError(
            "precision_curves draws {name: {k: precision}} with at least one name, and at least "
            "one k for each. Got none."
        )
    ax = axes_for(ax)
    ks = sorted({k for curve in precisions.values() for k in curve})
    for name, curve in precisions.items():
        own = sorted(curve)
        values = [100 * curve[k] for k in own]
        ax.plot(own, values, label=name, **line_style(len(ax.lines)))
    if ks[-1] > 20 * ks[0]:
        ax.set_xscale("log")
    if len(ks) <= 10:
        ax.set_xticks(ks, [str(k) for k in ks])
        ax.set_xticks([], minor=True)
    lowest = float(np.min([value for curve in precisions.values() for value in curve.values()]))
    ax.set_ylim(max(0.0, 100 * lowest - 5), 100.5)
    ax.set(xlabel="k", ylabel="precision of the first k (%)")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return quiet_frame(ax)


def windows(history: dict[str, Floats], field: str, n_windows: int) -> tuple[Floats, Floats]:
    """The mean of a running total in each of some stretches: (rounds at the end, means).

    Examples
    --------
    >>> import numpy as np
    >>> history = {"rounds": np.arange(1.0, 5.0), "loss": np.array([2.0, 4.0, 5.0, 5.0])}
    >>> windows(history, "loss", 2)
    (array([2., 4.]), array([2. , 0.5]))
    """
    check_count(n_windows, "n_windows")
    rounds, totals = history["rounds"], history[field]
    ends = np.linspace(0, len(rounds), min(n_windows, len(rounds)) + 1).round().astype(int)[1:] - 1
    at, total = rounds[ends], totals[ends]
    return at, np.diff(total, prepend=0.0) / np.diff(at, prepend=0.0)


def _history(learner: Any) -> dict[str, Floats]:
    history = getattr(learner, "history_", None)
    if not isinstance(history, dict) or "loss" not in history:
        raise InvalidInputError(
            f"{type(learner).__name__} has no history_ of its loss; give a fitted learner that "
            "keeps one, such as PassiveAggressive or LMNN."
        )
    if not len(history["loss"]):
        raise InvalidInputError(f"The history_ of this {type(learner).__name__} is empty.")
    return history
