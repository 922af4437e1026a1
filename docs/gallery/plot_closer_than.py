"""
What if people only say "closer than"?
======================================

"These two are more alike than those two" is often all that people can say. `LSML` learns from such
quadruplets; here they are said under a hidden distance that looks at four of twelve features.
"""

import matplotlib.pyplot as plt
import numpy as np

from samewise import LSML, Mahalanobis, Quadruplets

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 12))
hidden = Mahalanobis(np.diag(np.repeat([1.0, 0.05], [4, 8])))


def said(n):
    """Quadruplets, the closer pair first."""
    one, other = rng.integers(300, size=(2, n, 2))
    near, far = (hidden.pairs(X[pair[:, 0]], X[pair[:, 1]]) for pair in (one, other))
    a, b = np.where((near < far)[:, None], one, other), np.where((near < far)[:, None], other, one)
    return Quadruplets(X, *a.T, *b.T)


judged, sizes = said(4_000), [10, 30, 100, 300, 1000, 3000]
scores = [LSML().fit(said(n)).score(judged) for n in sizes]
plt.figure(figsize=(5, 3.4), layout="constrained")
plt.semilogx(sizes, scores, "o-", label="LSML")
plain = LSML(gamma=1e-9).fit(judged).score(judged)
plt.axhline(plain, color="gray", linestyle="--", label="Euclidean")
plt.xlabel("quadruplets")
plt.ylabel("right for new ones")
plt.legend()
plt.show()
