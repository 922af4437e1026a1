"""Where to draw, and how lines differ without color."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.forms import Form, Mahalanobis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#2f6db3", "#c8641b", "#4d8b31", "#8a5aa8", "#a33b52", "#3a8f8f")
LINES = ("-", "--", "-.", ":")
MARKERS = "osD^vP*X<>ph"
CENTERED: dict[str, Any] = {"ha": "center", "va": "center"}


def axes_for(ax: Axes | None) -> Axes:
    """The given axes, or the current ones of pyplot."""
    if ax is not None:
        return ax
    require_matplotlib("samewise.plots")
    from matplotlib import pyplot

    return pyplot.gca()


def require_matplotlib(what: str) -> None:
    """Say what to install if matplotlib is not there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{what} needs matplotlib: pip install 'samewise[plots]'.") from error


def line_style(n: int) -> dict[str, Any]:
    """Color, dashes and marker of the n-th line; no two of the first twelve look alike in gray."""
    return {
        "color": COLORS[n % len(COLORS)],
        "linestyle": LINES[n % len(LINES)],
        "marker": MARKERS[n % len(MARKERS)],
        "markersize": 4,
    }


def plain(name: object) -> str:
    r"""A name as it stands: between two dollars matplotlib would look for a formula.

    Examples
    --------
    >>> print(plain("$x$"))
    \$x\$
    """
    return str(name).replace("$", r"\$")


def form_for(form: Form | None, n_features: int) -> Form:
    """The form itself; None is the Euclidean distance."""
    return Mahalanobis.identity(n_features) if form is None else form


def check_count(value: Any, name: str, least: int = 1) -> int:
    """A whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInputError(f"{name} must be an integer of at least {least}. Got {value!r}.")
    return int(value)


def quiet_frame(ax: Axes) -> Axes:
    """No lines above and to the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_line(
    ax: Axes | None, x: NDArray[Any], y: Array, names: tuple[str, str], label: str | None
) -> Axes:
    """A line in the next style, with names below and beside it, and a legend if it has a label."""
    ax = axes_for(ax)
    style = line_style(len(ax.lines))
    if len(x) > 60:
        style["marker"] = None
    ax.plot(x, y, label=label, **style)
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_ylim(bottom=0, auto=True)
    ax.grid(alpha=0.3)
    if label is not None:
        ax.legend(frameon=False)
    return quiet_frame(ax)
