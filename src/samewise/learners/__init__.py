"""Algorithms that learn a form, one paper's family to a file."""

from samewise.learners.aroma import DiagonalAROMA, FactoredAROMA
from samewise.learners.gcosla import GCosLA
from samewise.learners.hier import HIER
from samewise.learners.igml import IGML, KIGML
from samewise.learners.itml import ITML
from samewise.learners.kernel_pola import KernelPOLA
from samewise.learners.lego import LEGO
from samewise.learners.lmnn import LMNN, KernelLMNN, MultiMetricLMNN
from samewise.learners.mcml import MCML
from samewise.learners.mmc import MMC
from samewise.learners.nca import NCA
from samewise.learners.oasis import OASIS
from samewise.learners.passive_aggressive import PassiveAggressive
from samewise.learners.plain import LDA, PCA, Cosine, Covariance, Euclidean
from samewise.learners.pola import POLA
from samewise.learners.rbs import RBS
from samewise.learners.rca import KRCA, RCA
from samewise.learners.relief import Relief
from samewise.learners.sila import SiLA
from samewise.learners.snn import SNN
from samewise.learners.srbs import SRBS

__all__ = [
    "HIER",
    "IGML",
    "ITML",
    "KIGML",
    "KRCA",
    "LDA",
    "LEGO",
    "LMNN",
    "MCML",
    "MMC",
    "NCA",
    "OASIS",
    "PCA",
    "POLA",
    "RBS",
    "RCA",
    "SNN",
    "SRBS",
    "Cosine",
    "Covariance",
    "DiagonalAROMA",
    "Euclidean",
    "FactoredAROMA",
    "GCosLA",
    "KernelLMNN",
    "KernelPOLA",
    "MultiMetricLMNN",
    "PassiveAggressive",
    "Relief",
    "SiLA",
]
