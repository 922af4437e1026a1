"""How far an online learner moves: τ from the violation and the squared norm of the direction."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled

ROUNDING = 1e-12
"""A violation below this is rounding, not a violation: an uncapped step makes the loss exactly 0,
so a repeated example would otherwise update or not by the last bit."""


Vector: TypeAlias = NDArray[np.float64]

# What compiled loops take together. Plain tuples: numba takes a named one only after a slow look at
# its class.
Wanted: TypeAlias = tuple[Vector, Vector, Vector, Vector]
"""sign, offset, target and weight of each example."""
Moved: TypeAlias = tuple[Vector, Vector, Vector]
"""τ, the violation and the b it met of each example: written by the loops."""
Rows: TypeAlias = tuple[NDArray[Any], NDArray[np.uint32], Array]
"""CSR rows: indptr, indices, data."""


StepTuple: TypeAlias = tuple[float, float, bool, float]
"""cap, relax, signed and tolerance of a Step."""


class Step(NamedTuple):
    """τ = min(cap · w, p / (‖G‖² + o² + relax / w)) for an example of weight w.

    p is the violation; unless `signed`, only p > 0 moves anything. A step with |τ| < `tolerance` is
    not made.
    """

    cap: float = math.inf
    relax: float = 0.0
    signed: bool = False
    tolerance: float = 0.0

    @property
    def plain(self) -> StepTuple:
        """The step as compiled loops take it."""
        return float(self.cap), float(self.relax), bool(self.signed), float(self.tolerance)


@compiled
def step_size(p: float, sq_norm: float, weight: float, step: StepTuple) -> float:
    """τ of one example; 0 where it is passive."""
    cap, relax, signed, tolerance = step
    if weight == 0.0 or (p <= ROUNDING and not (signed and p < -ROUNDING)):
        return 0.0
    # The smaller of the two: cap·w is infinite wherever the violation is signed.
    tau = min(cap * weight, p / (sq_norm + relax / weight))
    return tau if abs(tau) >= tolerance else 0.0
