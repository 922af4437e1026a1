"""Large margin nearest neighbors."""

from samewise.learners.lmnn.estimator import LMNN

__all__ = ["LMNN"]
