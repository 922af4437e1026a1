"""What the parameters that several learners share may be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from samewise.engine.mover import PATHS
from samewise.exceptions import InvalidInputError
from samewise.kernels import normalizers
from samewise.supervision.purposes import STRATEGIES

COUNT: Any = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
FRACTION = Interval(Real, 0, 1, closed="both")

SHARED: dict[str, list[Any]] = {
    "C": [POSITIVE],
    "average": [str, tuple, list],
    "callback": [callable, None],
    "evaluate_every": [COUNT, None],
    "hinge": [StrOptions({"linear", "squared"})],
    "max_iter": [COUNT],
    "n_components": [COUNT, None],
    "n_neighbors": [COUNT],
    "n_pairs": [COUNT, None],
    "n_passes": [COUNT],
    "n_target_searches": [COUNT],
    "n_triplets": [COUNT, None],
    "normalizer": [StrOptions(set(normalizers.NAMES)), None],
    "path": [StrOptions(set(PATHS))],
    "patience": [COUNT],
    "psd": [StrOptions({"each", "end"}), Interval(Integral, 2, None, closed="left")],
    "purpose": [StrOptions(set(STRATEGIES))],
    "push_weight": [FRACTION],
    "random_state": ["random_state"],
    "rank": [COUNT, None],
    "relaxation": [NOT_NEGATIVE],
    "shrinkage": [FRACTION],
    "shuffle": ["boolean"],
    "smoothing": [POSITIVE],
    "solver": [StrOptions({"L", "M"})],
    "structure": [StrOptions({"full", "diagonal"})],
    "targets": ["array-like", None],
    "tol": [NOT_NEGATIVE],
    "tolerance": [NOT_NEGATIVE],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
}
"""Constraints by name, for a learner that does not declare others; see `Learner`."""


def check_at_most(name: str, given: int | None, most: int, what: str) -> None:
    """Refuse a parameter above what the data allow: `most`, which is `what`."""
    if given is not None and given > most:
        raise InvalidInputError(f"{name} must be at most {what}, {most}. Got {given} instead.")
