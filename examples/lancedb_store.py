"""LiveAdapter in front of LanceDB: the index stays as it is, only queries are mapped."""

import tempfile

import lancedb
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from samewise import LiveAdapter

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0)).astype(np.float32)
items, queries = X[:1500], X[1500:]
folder = tempfile.TemporaryDirectory()
rows = [{"id": i, "vector": row} for i, row in enumerate(items)]
table = lancedb.connect(folder.name).create_table("digits", rows)
adapter = LiveAdapter(items=items, random_state=0).fit(items)


def search(vectors, k=10):
    found = [table.search(v).distance_type("dot").limit(k).to_list() for v in vectors]
    return np.array([[row["id"] for row in rows] for rows in found])


for q, digit in zip(queries[:200], y[1500:1700], strict=True):
    shown = search(adapter.embed_query(q)[None])[0]
    adapter.feedback(q, shown, np.where(y[shown] == digit, 1, -1))

for name, form in (("start", adapter.start), ("live", adapter.live)):
    found = search(form.embed_query(queries[200:]))
    print(name, round(float(np.mean(y[found] == y[1700:, None])), 3))
