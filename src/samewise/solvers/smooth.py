"""Smooth objectives, minimized by SciPy's L-BFGS-B."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from samewise._typing import Array
from samewise.solvers.evaluation import LossAndGradient, Objective

Vector = NDArray[np.float64]


def minimize_smooth(
    objective: Objective[LossAndGradient],
    start: Array,
    *,
    look: Callable[[Array, float], bool],
    bounds: list[tuple[float | None, float | None]] | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimize over a vector.

    Parameters
    ----------
    objective : Objective
        Takes and returns vectors.
    start : array
    look : callable
        Called after each iteration with a copy of the vector and its loss; true ends the run.
    bounds : list of pairs, optional
        The least and the largest value of each entry, None for no bound.
    **options
        Those of SciPy's L-BFGS-B: "maxiter", "maxfun", "ftol", "gtol".

    Returns
    -------
    OptimizeResult
    """

    def evaluated(p: Vector) -> tuple[float, Vector]:
        found = objective.value_and_gradient(p)
        return found.loss, found.gradient

    def after_iteration(intermediate_result: OptimizeResult) -> None:
        if look(intermediate_result.x.copy(), float(intermediate_result.fun)):
            raise StopIteration

    if "ftol" in options:
        # A change of the loss relative to its size is 2 at most, and SciPy multiplies the limit.
        options["ftol"] = min(options["ftol"], 2.0)
    return minimize(
        evaluated,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=after_iteration,
        options=options,
    )
