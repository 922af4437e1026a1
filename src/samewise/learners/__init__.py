"""Algorithms that learn a form, one paper's family to a file."""

from samewise.learners.aroma import DiagonalAROMA, FactoredAROMA
from samewise.learners.kernel_pola import KernelPOLA
from samewise.learners.lmnn import LMNN
from samewise.learners.oasis import OASIS
from samewise.learners.passive_aggressive import PassiveAggressive
from samewise.learners.pola import POLA

__all__ = [
    "LMNN",
    "OASIS",
    "POLA",
    "DiagonalAROMA",
    "FactoredAROMA",
    "KernelPOLA",
    "PassiveAggressive",
]
