"""
Can neighbors predict numbers?
==============================

Of 20 features five matter, but neighbors look at all. MLKR learns a distance under which near
examples have near targets.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1

from samewise import MLKR, KNNRegressor

X, y = make_friedman1(400, 20, noise=1, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True, layout="constrained")
for ax, (name, metric) in zip(axes, {"Euclidean": None, "MLKR": MLKR()}.items(), strict=True):
    model = KNNRegressor(metric).fit(X[:250], y[:250])
    ax.plot(y[250:], model.predict(X[250:]), ".")
    ax.axline((15, 15), slope=1, color="gray")
    ax.set_title(f"{name}: R² {model.score(X[250:], y[250:]):.2f}")
    ax.set_xlabel("target")
axes[0].set_ylabel("predicted")
plt.show()
