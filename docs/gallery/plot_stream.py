"""
How fast does a stream teach?
=============================

Pairs come one by one. Each is judged before it is learned from, so that the errors along the way
are those of a user who has waited for nothing.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from samewise import POLA, Pairs, PassiveAggressive
from samewise.plots import predictive_error_curve

X, y = load_digits(return_X_y=True)
stream = Pairs.from_labels(X / 16, y, n_pairs=10_000, random_state=0)

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, learner in (
    ("PA-I", PassiveAggressive(C=0.01)),
    ("POLA", POLA(relaxation=1.0)),
):
    for start in range(0, len(stream), 500):
        learner.partial_fit(stream[start : start + 500])
    predictive_error_curve(learner, label=name, ax=ax)
ax.legend()
plt.show()
