"""
Where do I set the threshold?
=============================

Whether two are the same is a question of how near is near enough. A `Verifier` chooses the distance
for a wanted rate of false acceptances, on pairs that had no part in learning.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from samewise import ITML, Pairs, Verifier
from samewise.scores import roc

X, y = load_digits(return_X_y=True)
X = X[:, X.std(axis=0) > 0] / 16
parts = [slice(0, 600), slice(600, 1200), slice(1200, None)]
learned, calibrated, judged = (
    Pairs.from_labels(X[part], y[part], n_pairs=3_000, random_state=0) for part in parts
)
itml = ITML(max_iter=20, tol=0.1).fit(learned)
curve = roc(itml.pair_score(judged), judged.y)

plt.figure(figsize=(5, 4), layout="constrained")
plt.plot(curve.fpr, curve.tpr, label=f"area {curve.auc:.3f}")
for rate in (0.01, 0.1):
    verifier = Verifier(itml, criterion="far", rate=rate).fit(calibrated)
    said = verifier.predict(judged)
    accepted = [(said[judged.y == sign] == 1).mean() for sign in (-1, 1)]
    plt.plot(*accepted, "o", label=f"threshold for {rate:.0%} false acceptances")
plt.xlabel("false acceptances")
plt.ylabel("true acceptances")
plt.legend()
plt.show()
