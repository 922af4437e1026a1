"""Large margin nearest neighbors."""

from samewise.learners.batch.lmnn.estimator import LMNN
from samewise.learners.batch.lmnn.kernel_lmnn import KernelLMNN
from samewise.learners.batch.lmnn.multi_metric_lmnn import MultiMetricLMNN

__all__ = ["LMNN", "KernelLMNN", "MultiMetricLMNN"]
