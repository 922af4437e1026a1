"""
What of my programs for metric-learn?
=====================================

They change their import. Everything below is written for metric-learn; the learned matrices are
samewise's.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from samewise.compat.metric_learn import LFDA, LMNN, NCA, SCML_Supervised

X, y = load_wine(return_X_y=True)
X = scale(X)
figure, axes = plt.subplots(2, 2, figsize=(7, 6), layout="constrained")
for ax, learner in zip(
    axes.ravel(),
    (
        LMNN(n_neighbors=3, n_components=2, random_state=0),
        NCA(n_components=2, random_state=0),
        LFDA(n_components=2),
        SCML_Supervised(random_state=0),
    ),
    strict=True,
):
    mapped = learner.fit(X, y).transform(X)
    ax.scatter(mapped[:, 0], mapped[:, 1], c=y, s=12)
    ax.set_title(type(learner).__name__)
plt.show()
