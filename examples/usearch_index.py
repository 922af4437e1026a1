"""LiveAdapter in front of usearch: the index stays as it is, only queries are mapped."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize
from usearch.index import Index

from samewise import LiveAdapter

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0)).astype(np.float32)
items, queries = X[:1500], X[1500:]
index = Index(ndim=items.shape[1], metric="ip", dtype="f32")
index.add(np.arange(len(items)), items)
adapter = LiveAdapter(items=items, random_state=0).fit(items)


def search(vectors, k=10):
    # A single query comes back as one row, several as a matrix.
    return np.asarray(index.search(vectors, k).keys).reshape(len(vectors), k).astype(int)


for q, digit in zip(queries[:200], y[1500:1700], strict=True):
    shown = search(adapter.embed_query(q)[None])[0]
    adapter.feedback(q, shown, np.where(y[shown] == digit, 1, -1))

for name, form in (("start", adapter.start), ("live", adapter.live)):
    found = search(form.embed_query(queries[200:]))
    print(name, round(float(np.mean(y[found] == y[1700:, None])), 3))
