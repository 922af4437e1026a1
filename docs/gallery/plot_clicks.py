"""
Can a search learn from clicks?
===============================

Digits are searched by their cosine. Someone who looks for digits of the same kind clicks on what is
right. A `LiveAdapter` learns from each list, and the lists after it are better.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from samewise import LiveAdapter

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0))
items, kinds = X[:1200], y[:1200]
adapter = LiveAdapter(items=items, random_state=0).fit(items)


def best(form, queries, n=10):
    """The rows of the n most similar items."""
    return np.argsort(-form.embed_query(queries) @ items.T, axis=1)[:, :n]


curve = []
for step, (query, kind) in enumerate(zip(X[1200:1500], y[1200:1500], strict=True)):
    shown = best(adapter.live, query[None])[0]
    adapter.feedback(query, shown, np.where(kinds[shown] == kind, 1, -1))
    if step % 20 == 19:
        found = best(adapter.live, X[1500:])
        curve.append((step + 1, np.mean(kinds[found] == y[1500:, None])))

start = np.mean(kinds[best(adapter.start, X[1500:])] == y[1500:, None])
plt.figure(figsize=(6, 3.5), layout="constrained")
plt.plot(*zip(*curve, strict=True), label="with what was learned")
plt.axhline(start, color="gray", linestyle="--", label="the cosine")
plt.xlabel("lists with clicks")
plt.ylabel("right ones among ten")
plt.legend()
plt.show()
