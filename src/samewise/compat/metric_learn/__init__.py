"""metric-learn's names, parameters and habits over samewise's learners.

``from samewise.compat import metric_learn`` in place of ``import metric_learn`` is the only change
to a program. What is learned is samewise's, with the same objective where there is one; the form is
`metric_`. The page "From metric-learn" lists what is different.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from samewise.compat import metric_learn
>>> X, y = load_iris(return_X_y=True)
>>> lmnn = metric_learn.LMNN(n_neighbors=3).fit(X, y)
>>> lmnn.get_mahalanobis_matrix().shape
(4, 4)
"""

from samewise.compat.metric_learn.of_comparisons import LSML, SCML, LSML_Supervised, SCML_Supervised
from samewise.compat.metric_learn.of_labels import (
    LFDA,
    LMNN,
    MLKR,
    NCA,
    RCA,
    Covariance,
    RCA_Supervised,
)
from samewise.compat.metric_learn.of_pairs import (
    ITML,
    MMC,
    SDML,
    ITML_Supervised,
    MMC_Supervised,
    SDML_Supervised,
)
from samewise.compat.metric_learn.sampled_constraints import Constraints

__all__ = [
    "ITML",
    "LFDA",
    "LMNN",
    "LSML",
    "MLKR",
    "MMC",
    "NCA",
    "RCA",
    "SCML",
    "SDML",
    "Constraints",
    "Covariance",
    "ITML_Supervised",
    "LSML_Supervised",
    "MMC_Supervised",
    "RCA_Supervised",
    "SCML_Supervised",
    "SDML_Supervised",
]
