"""The public names, for type checkers; written by `python -m tools.stub`."""

from samewise import adapt as adapt
from samewise import datasets as datasets
from samewise import exceptions as exceptions
from samewise import filtering as filtering
from samewise import plots as plots
from samewise import scale as scale
from samewise import scores as scores
from samewise.adapt import LiveAdapter as LiveAdapter
from samewise.adapt import evaluate_feedback as evaluate_feedback
from samewise.decide import Guarded as Guarded
from samewise.decide import KNNClassifier as KNNClassifier
from samewise.decide import KNNRegressor as KNNRegressor
from samewise.decide import PerClassClassifier as PerClassClassifier
from samewise.decide import Verifier as Verifier
from samewise.filtering import BatchTopicFilter as BatchTopicFilter
from samewise.filtering import NearestFilter as NearestFilter
from samewise.filtering import PAUMFilter as PAUMFilter
from samewise.filtering import PerceptronFilter as PerceptronFilter
from samewise.filtering import PolaFilter as PolaFilter
from samewise.filtering import TextVectors as TextVectors
from samewise.filtering import TopicFilter as TopicFilter
from samewise.forms import Bilinear as Bilinear
from samewise.forms import Form as Form
from samewise.forms import GeneralizedCosine as GeneralizedCosine
from samewise.forms import KernelMahalanobis as KernelMahalanobis
from samewise.forms import LowRankBilinear as LowRankBilinear
from samewise.forms import Mahalanobis as Mahalanobis
from samewise.forms import MultiMetric as MultiMetric
from samewise.forms import NeuralSimilarity as NeuralSimilarity
from samewise.forms import NormalizedBilinear as NormalizedBilinear
from samewise.forms import PosteriorSimilarity as PosteriorSimilarity
from samewise.learners.batch.hier import HIER as HIER
from samewise.learners.batch.itml import ITML as ITML
from samewise.learners.batch.lmnn.estimator import LMNN as LMNN
from samewise.learners.batch.lmnn.kernel_lmnn import KernelLMNN as KernelLMNN
from samewise.learners.batch.lmnn.multi_metric_lmnn import MultiMetricLMNN as MultiMetricLMNN
from samewise.learners.batch.lsml import LSML as LSML
from samewise.learners.batch.mcml import MCML as MCML
from samewise.learners.batch.mlkr import MLKR as MLKR
from samewise.learners.batch.mmc import MMC as MMC
from samewise.learners.batch.nca import NCA as NCA
from samewise.learners.batch.scml import SCML as SCML
from samewise.learners.batch.sdml import SDML as SDML
from samewise.learners.batch.snn import SNN as SNN
from samewise.learners.closed.classical import Cosine as Cosine
from samewise.learners.closed.classical import Covariance as Covariance
from samewise.learners.closed.classical import Euclidean as Euclidean
from samewise.learners.closed.classical import LDA as LDA
from samewise.learners.closed.classical import PCA as PCA
from samewise.learners.closed.igml import IGML as IGML
from samewise.learners.closed.igml import KIGML as KIGML
from samewise.learners.closed.lfda import LFDA as LFDA
from samewise.learners.closed.rca import KRCA as KRCA
from samewise.learners.closed.rca import RCA as RCA
from samewise.learners.neighbors.rbs import RBS as RBS
from samewise.learners.neighbors.relief import Relief as Relief
from samewise.learners.neighbors.sila import SiLA as SiLA
from samewise.learners.neighbors.srbs import SRBS as SRBS
from samewise.learners.online.aroma import DiagonalAROMA as DiagonalAROMA
from samewise.learners.online.aroma import FactoredAROMA as FactoredAROMA
from samewise.learners.online.gcosla import GCosLA as GCosLA
from samewise.learners.online.kernel_pola import KernelPOLA as KernelPOLA
from samewise.learners.online.lego import LEGO as LEGO
from samewise.learners.online.oasis import OASIS as OASIS
from samewise.learners.online.passive_aggressive import PassiveAggressive as PassiveAggressive
from samewise.learners.online.pola import POLA as POLA
from samewise.loading import load as load
from samewise.model import Model as Model
from samewise.protocols import choose_learner as choose_learner
from samewise.protocols import compare as compare
from samewise.protocols import evaluate as evaluate
from samewise.protocols import fit_model as fit_model
from samewise.protocols import gain as gain
from samewise.protocols import tune_C as tune_C
from samewise.protocols import warm_up as warm_up
from samewise.report import ReportOptions as ReportOptions
from samewise.report import write_report as write_report
from samewise.search import Index as Index
from samewise.search import margins as margins
from samewise.serve import AsyncClient as AsyncClient
from samewise.serve import Client as Client
from samewise.supervision import Judgements as Judgements
from samewise.supervision import Pairs as Pairs
from samewise.supervision import Quadruplets as Quadruplets
from samewise.supervision import Triplets as Triplets

__version__: str

__all__ = [
    "AsyncClient",
    "BatchTopicFilter",
    "Bilinear",
    "Client",
    "Cosine",
    "Covariance",
    "DiagonalAROMA",
    "Euclidean",
    "FactoredAROMA",
    "Form",
    "GCosLA",
    "GeneralizedCosine",
    "Guarded",
    "HIER",
    "IGML",
    "ITML",
    "Index",
    "Judgements",
    "KIGML",
    "KNNClassifier",
    "KNNRegressor",
    "KRCA",
    "KernelLMNN",
    "KernelMahalanobis",
    "KernelPOLA",
    "LDA",
    "LEGO",
    "LFDA",
    "LMNN",
    "LSML",
    "LiveAdapter",
    "LowRankBilinear",
    "MCML",
    "MLKR",
    "MMC",
    "Mahalanobis",
    "Model",
    "MultiMetric",
    "MultiMetricLMNN",
    "NCA",
    "NearestFilter",
    "NeuralSimilarity",
    "NormalizedBilinear",
    "OASIS",
    "PAUMFilter",
    "PCA",
    "POLA",
    "Pairs",
    "PassiveAggressive",
    "PerClassClassifier",
    "PerceptronFilter",
    "PolaFilter",
    "PosteriorSimilarity",
    "Quadruplets",
    "RBS",
    "RCA",
    "Relief",
    "ReportOptions",
    "SCML",
    "SDML",
    "SNN",
    "SRBS",
    "SiLA",
    "TextVectors",
    "TopicFilter",
    "Triplets",
    "Verifier",
    "adapt",
    "choose_learner",
    "compare",
    "datasets",
    "evaluate",
    "evaluate_feedback",
    "exceptions",
    "filtering",
    "fit_model",
    "gain",
    "load",
    "margins",
    "plots",
    "scale",
    "scores",
    "tune_C",
    "warm_up",
    "write_report",
]
