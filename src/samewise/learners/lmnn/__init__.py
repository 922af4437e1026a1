"""Large margin nearest neighbors."""

from samewise.learners.lmnn.estimator import LMNN
from samewise.learners.lmnn.kernel import KernelLMNN
from samewise.learners.lmnn.multi import MultiMetricLMNN

__all__ = ["LMNN", "KernelLMNN", "MultiMetricLMNN"]
