"""Data sets from files or from OpenML, short texts, and toy problems with known answers."""

from samewise.datasets.help_desk import load_help_desk
from samewise.datasets.known import KNOWN, OPENML
from samewise.datasets.openml import fetch
from samewise.datasets.separable_pairs import make_separable_pairs
from samewise.datasets.store import available, load
from samewise.datasets.toys import make_concentric_circles, make_noisy_digits, make_zebra_stripes

__all__ = [
    "KNOWN",
    "OPENML",
    "available",
    "fetch",
    "load",
    "load_help_desk",
    "make_concentric_circles",
    "make_noisy_digits",
    "make_separable_pairs",
    "make_zebra_stripes",
]
