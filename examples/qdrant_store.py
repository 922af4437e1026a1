"""LiveAdapter in front of Qdrant, here in local mode: only queries are mapped."""

import numpy as np
from qdrant_client import QdrantClient, models
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from samewise import LiveAdapter

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0)).astype(np.float32)
items, queries = X[:1500], X[1500:]
client = QdrantClient(":memory:")
params = models.VectorParams(size=items.shape[1], distance=models.Distance.DOT)
client.create_collection("digits", vectors_config=params)
client.upload_collection("digits", vectors=items, ids=range(len(items)))
adapter = LiveAdapter(items=items, random_state=0).fit(items)


def search(vectors, k=10):
    found = [client.query_points("digits", query=v.tolist(), limit=k).points for v in vectors]
    return np.array([[point.id for point in points] for points in found])


for q, digit in zip(queries[:200], y[1500:1700], strict=True):
    shown = search(adapter.embed_query(q)[None])[0]
    adapter.feedback(q, shown, np.where(y[shown] == digit, 1, -1))

for name, form in (("start", adapter.start), ("live", adapter.live)):
    found = search(form.embed_query(queries[200:]))
    print(name, round(float(np.mean(y[found] == y[1700:, None])), 3))
