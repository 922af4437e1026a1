"""LiveAdapter in front of hnswlib: the index stays as it is, only queries are mapped."""

import hnswlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from samewise import LiveAdapter

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0)).astype(np.float32)
items, queries = X[:1500], X[1500:]
index = hnswlib.Index(space="ip", dim=items.shape[1])
index.init_index(max_elements=len(items), ef_construction=200, M=16, random_seed=0)
index.add_items(items, np.arange(len(items)))
index.set_ef(100)
adapter = LiveAdapter(items=items, random_state=0).fit(items)


def search(vectors, k=10):
    return index.knn_query(vectors, k)[0].astype(int)


for q, digit in zip(queries[:200], y[1500:1700], strict=True):
    shown = search(adapter.embed_query(q)[None])[0]
    adapter.feedback(q, shown, np.where(y[shown] == digit, 1, -1))

for name, form in (("start", adapter.start), ("live", adapter.live)):
    found = search(form.embed_query(queries[200:]))
    print(name, round(float(np.mean(y[found] == y[1700:, None])), 3))
