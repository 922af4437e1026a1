"""Data sets from files, the variants of the PA study, and toy problems with known answers."""

from samewise.datasets.fuzzy import Fuzzify
from samewise.datasets.pa_study import PA_STUDY, load_pa_study
from samewise.datasets.pairs import make_separable_pairs
from samewise.datasets.store import available, load
from samewise.datasets.toys import (
    make_concentric_circles,
    make_noisy_digits,
    make_zebra_stripes,
)

__all__ = [
    "PA_STUDY",
    "Fuzzify",
    "available",
    "load",
    "load_pa_study",
    "make_concentric_circles",
    "make_noisy_digits",
    "make_separable_pairs",
    "make_zebra_stripes",
]
