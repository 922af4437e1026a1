"""Algorithms that learn a form, one paper's family to a file."""

from samewise.learners.batch.hier import HIER
from samewise.learners.batch.itml import ITML
from samewise.learners.batch.lmnn import LMNN, KernelLMNN, MultiMetricLMNN
from samewise.learners.batch.mcml import MCML
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.nca import NCA
from samewise.learners.batch.snn import SNN
from samewise.learners.closed.classical import LDA, PCA, Cosine, Covariance, Euclidean
from samewise.learners.closed.igml import IGML, KIGML
from samewise.learners.closed.rca import KRCA, RCA
from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.relief import Relief
from samewise.learners.neighbors.sila import SiLA
from samewise.learners.neighbors.srbs import SRBS
from samewise.learners.online.aroma import DiagonalAROMA, FactoredAROMA
from samewise.learners.online.gcosla import GCosLA
from samewise.learners.online.kernel_pola import KernelPOLA
from samewise.learners.online.lego import LEGO
from samewise.learners.online.oasis import OASIS
from samewise.learners.online.passive_aggressive import PassiveAggressive
from samewise.learners.online.pola import POLA

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
