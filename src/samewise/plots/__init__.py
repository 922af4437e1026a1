"""Pictures of metrics, learners and neighbors, with matplotlib (`pip install 'samewise[plots]'`).

Every function draws on the axes `ax`, by default the current ones of pyplot, and returns them.
Whatever color says, a line style, a marker, a hatch or a word says too.
"""

from __future__ import annotations

from samewise.plots.curves import (
    learning_curve,
    precision_curves,
    predictive_error_curve,
    rank_curve,
)
from samewise.plots.histograms import margin_histogram, pair_histograms
from samewise.plots.images import neighbor_grid
from samewise.plots.matrices import matrix_heatmap, spectrum
from samewise.plots.plane import class_ellipses, projection

__all__ = [
    "class_ellipses",
    "learning_curve",
    "margin_histogram",
    "matrix_heatmap",
    "neighbor_grid",
    "pair_histograms",
    "precision_curves",
    "predictive_error_curve",
    "projection",
    "rank_curve",
    "spectrum",
]
