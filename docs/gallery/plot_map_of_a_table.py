"""
How do I draw a table in two dimensions?
========================================

Principal components show where examples vary; NCA with two components looks for directions in which
the nearest neighbors are of the same class.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from samewise import NCA, PCA, KNNClassifier
from samewise.plots import projection

X, y = load_digits(n_class=6, return_X_y=True)
X, X_new, y, y_new = X[::2] / 16, X[1::2] / 16, y[::2], y[1::2]

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, learner in zip(axes, (PCA(2), NCA(2, max_iter=30)), strict=True):
    learner.fit(X, y)
    error = 1 - KNNClassifier(learner).fit(X, y).score(X_new, y_new)
    projection(learner.metric_, X_new, y_new, ax=ax)
    ax.set_title(f"{type(learner).__name__}: {error:.0%} errors of 3-NN on new digits")
plt.show()
