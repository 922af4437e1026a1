"""What a solver asks of an objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Matrix64 = NDArray[np.float64]


@dataclass
class LossAndGradient:
    """The loss at a matrix, and its gradient; an objective may add more."""

    loss: float
    gradient: Matrix64


Evaluated = TypeVar("Evaluated", bound=LossAndGradient, covariant=True)


class Objective(Protocol[Evaluated]):
    """What is minimized."""

    def value_and_gradient(self, L: Matrix64, /) -> Evaluated:
        """The loss at L, and its gradient by L."""
