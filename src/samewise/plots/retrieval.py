"""How good the first k found items are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from samewise.exceptions import InvalidInputError
from samewise.plots._axes import axes_for, line_style, quiet_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
