"""
Are these two the same?
=======================

A distance is learned from pairs of digits that are called the same or not. Afterwards pairs of
digits that it has not seen are easier to tell apart.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from samewise import Euclidean, Pairs, PassiveAggressive
from samewise.plots import pair_histograms

X, y = load_digits(return_X_y=True)
X = X / 16
said = Pairs.from_labels(X[:900], y[:900], n_pairs=20_000, random_state=0)
unseen = Pairs.from_labels(X[900:], y[900:], n_pairs=4_000, random_state=0)

learner = PassiveAggressive(C=0.01, average="uniform").fit(said)
print(f"right for {learner.score(unseen):.1%} of new pairs")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
pair_histograms(Euclidean().fit(X).metric_, unseen, ax=axes[0])
axes[0].set_title("before")
pair_histograms(learner.metric_, unseen, ax=axes[1])
axes[1].set_title("after")
plt.show()
