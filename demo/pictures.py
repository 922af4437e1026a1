"""The report's pictures, as PNG images in data addresses."""

from __future__ import annotations

import base64
import io

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import ArrayLike, NDArray

from samewise import PassiveAggressive

BLUE, ORANGE, GRAY = "#2f6db3", "#c8641b", "#7a7a7a"

Floats = NDArray[np.float64]


def data_address(png: bytes) -> str:
    """An image that needs no file beside the page."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def learning_curve(learner: PassiveAggressive, width: int) -> tuple[Floats, Floats, Floats]:
    """Pairs seen, and the error rate and mean hinge loss over the `width` pairs before.

    Each pair counts as it was predicted when it arrived, before anything was learned from it.
    """
    history = learner.history_
    ends = np.searchsorted(history["rounds"], np.arange(width, learner.n_seen_ + 1, width))
    ends = ends[ends < len(history["rounds"])]
    rounds = np.concatenate([[0.0], history["rounds"][ends]])
    error, loss = (
        np.diff(np.concatenate([[0.0], history[name][ends]])) / np.diff(rounds)
        for name in ("mistakes", "loss")
    )
    return rounds[1:], error, loss


def curve_picture(rounds: Floats, error: Floats, loss: Floats) -> str:
    """Predictive error and mean hinge loss, one above the other."""
    figure = _figure(4.2)
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(rounds, 100 * error, color=BLUE, marker=".")
    above.set_ylabel("wrong (%)")
    below.plot(rounds, loss, color=ORANGE, marker=".")
    below.set_ylabel("mean hinge loss")
    below.set_xlabel("pairs seen")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
    return _png(figure)


def spectrum_picture(shares: Floats, n_features: int) -> str:
    """Each direction's share of the metric, beside the flat spectrum of the Euclidean one."""
    figure = _figure(3.2)
    axes = figure.subplots()
    axes.bar(np.arange(1, len(shares) + 1), 100 * shares, color=BLUE, label="learned")
    axes.axhline(100 / n_features, color=GRAY, linestyle="--", label="Euclidean")
    axes.set_xlabel("direction, strongest first")
    axes.set_ylabel("share of the eigenvalues (%)")
    axes.legend(frameon=False)
    return _png(figure)


def plane_picture(points: Floats, labels: ArrayLike) -> str:
    """Points of a plane, each class in its color with its digit at the median."""
    labels = np.asarray(labels)
    figure = _figure(4.6)
    axes = figure.subplots()
    axes.scatter(*points.T, c=labels, cmap="tab10", vmin=-0.5, vmax=9.5, s=9, alpha=0.65)
    for c in np.unique(labels):
        x, y = np.median(points[labels == c], axis=0)
        box = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "alpha": 0.85, "linewidth": 0}
        axes.text(x, y, str(c), ha="center", va="center", weight="bold", size=13, bbox=box)
    # Distances are what the picture is about: one unit is as long across as up.
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    return _png(figure)


def digit_picture(pixels: Floats) -> str:
    """One 8 × 8 image, dark on light."""
    buffer = io.BytesIO()
    imsave(buffer, 1 - pixels.reshape(8, 8), cmap="gray", vmin=0, vmax=1, metadata=_PLAIN)
    return data_address(buffer.getvalue())


_PLAIN: dict[str, None] = {"Software": None}


def _figure(height: float) -> Figure:
    return Figure(figsize=(5.6, height), dpi=150, layout="constrained")


def _png(figure: Figure) -> str:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata=_PLAIN)
    return data_address(buffer.getvalue())
