"""LiveAdapter in front of Chroma: the index stays as it is, only queries are mapped."""

import chromadb
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from samewise import LiveAdapter

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0)).astype(np.float32)
items, queries = X[:1500], X[1500:]
configuration = {"hnsw": {"space": "ip", "ef_search": 100}}
client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
store = client.create_collection("digits", configuration=configuration)
store.add(ids=[str(i) for i in range(len(items))], embeddings=items)
adapter = LiveAdapter(items=items, random_state=0).fit(items)


def search(vectors, k=10):
    return np.array(store.query(query_embeddings=vectors, n_results=k)["ids"]).astype(int)


for q, digit in zip(queries[:200], y[1500:1700], strict=True):
    shown = search(adapter.embed_query(q)[None])[0]
    adapter.feedback(q, shown, np.where(y[shown] == digit, 1, -1))

for name, form in (("start", adapter.start), ("live", adapter.live)):
    found = search(form.embed_query(queries[200:]))
    print(name, round(float(np.mean(y[found] == y[1700:, None])), 3))
