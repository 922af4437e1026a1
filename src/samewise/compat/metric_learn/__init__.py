"""metric-learn's names, parameters and habits over samewise's learners.

``from samewise.compat import metric_learn`` in place of ``import metric_learn`` is the only change
to a program. What is learned is samewise's, with the same objective where there is one; the form is
`metric_`. Modules have metric-learn's names too: `constraints`, `exceptions`, and one for each
algorithm. The page "From metric-learn" lists what is different.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from samewise.compat import metric_learn
>>> X, y = load_iris(return_X_y=True)
>>> lmnn = metric_learn.LMNN(n_neighbors=3).fit(X, y)
>>> lmnn.get_mahalanobis_matrix().shape
(4, 4)
"""

from samewise.compat.metric_learn.constraints import Constraints
from samewise.compat.metric_learn.covariance import Covariance
from samewise.compat.metric_learn.itml import ITML, ITML_Supervised
from samewise.compat.metric_learn.lfda import LFDA
from samewise.compat.metric_learn.lmnn import LMNN
from samewise.compat.metric_learn.lsml import LSML, LSML_Supervised
from samewise.compat.metric_learn.mlkr import MLKR
from samewise.compat.metric_learn.mmc import MMC, MMC_Supervised
from samewise.compat.metric_learn.nca import NCA
from samewise.compat.metric_learn.rca import RCA, RCA_Supervised
from samewise.compat.metric_learn.scml import SCML, SCML_Supervised
from samewise.compat.metric_learn.sdml import SDML, SDML_Supervised

__version__ = "0.7.0"
"""The version of metric-learn whose names these are."""

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
    "__version__",
]
