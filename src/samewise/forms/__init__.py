"""Learned metrics: frozen objects that compare rows."""

from samewise.forms.bilinear import Bilinear, NormalizedBilinear
from samewise.forms.form import Form
from samewise.forms.generalized_cosine import GeneralizedCosine
from samewise.forms.kernel_mahalanobis import KernelMahalanobis
from samewise.forms.low_rank import LowRankBilinear
from samewise.forms.mahalanobis import Mahalanobis
from samewise.forms.multi_metric import MultiMetric
from samewise.forms.neural import NeuralSimilarity
from samewise.forms.posterior import PosteriorSimilarity

__all__ = [
    "Bilinear",
    "Form",
    "GeneralizedCosine",
    "KernelMahalanobis",
    "LowRankBilinear",
    "Mahalanobis",
    "MultiMetric",
    "NeuralSimilarity",
    "NormalizedBilinear",
    "PosteriorSimilarity",
]
