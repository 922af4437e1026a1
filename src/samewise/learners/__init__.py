"""Algorithms that learn a form, one paper's family to a file."""

from samewise.learners.aroma import DiagonalAROMA, FactoredAROMA
from samewise.learners.gcosla import GCosLA
from samewise.learners.kernel_pola import KernelPOLA
from samewise.learners.lmnn import LMNN, KernelLMNN, MultiMetricLMNN
from samewise.learners.oasis import OASIS
from samewise.learners.passive_aggressive import PassiveAggressive
from samewise.learners.pola import POLA
from samewise.learners.rbs import RBS
from samewise.learners.relief import Relief
from samewise.learners.sila import SiLA
from samewise.learners.srbs import SRBS

__all__ = [
    "LMNN",
    "OASIS",
    "POLA",
    "RBS",
    "SRBS",
    "DiagonalAROMA",
    "FactoredAROMA",
    "GCosLA",
    "KernelLMNN",
    "KernelPOLA",
    "MultiMetricLMNN",
    "PassiveAggressive",
    "Relief",
    "SiLA",
]
