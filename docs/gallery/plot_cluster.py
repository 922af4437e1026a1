"""
Which clusters do I mean?
=========================

k-means finds the clusters that the largest features make. A few labels say which ones are meant:
RCA learns a distance from a fifth of the wines, and all of them are clustered under it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from samewise import RCA, Euclidean
from samewise.plots import projection

X, y = load_wine(return_X_y=True)
labeled = np.random.default_rng(0).permutation(len(y))[: len(y) // 5]
spaces = {
    "as they are": (X, Euclidean().fit(X).metric_),
    "learned": (scale(X), RCA(shrinkage=0.1).fit(scale(X)[labeled], y[labeled]).metric_),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, (rows, form)) in zip(axes, spaces.items(), strict=True):
    found = KMeans(3, n_init=10, random_state=0).fit_predict(form.embed(rows))
    projection(form, rows, found, ax=ax)
    ax.set_title(f"{name}: adjusted Rand index {adjusted_rand_score(y, found):.2f}")
plt.show()
