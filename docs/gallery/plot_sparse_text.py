"""
What about sparse text?
=======================

Documents are rows with few words of many. `DiagonalAROMA` learns a similarity from triplets and
touches only the words that a document has. The words of a topic here are many, and a document has
eight of them, so that two documents of a topic share few.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from samewise import Cosine, DiagonalAROMA, KNNClassifier, Triplets

rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(400, 0.3), size=6)
y = rng.integers(6, size=1200)
counts = np.array([rng.multinomial(8, topics[topic]) for topic in y])
X = normalize(sp.csr_array(counts.astype(float)))
learn, judge = slice(0, 800), slice(800, None)

triplets = Triplets.from_labels(X[learn], y[learn], n_triplets=20_000, random_state=0)
forms = {
    "cosine": Cosine().fit(X[learn]).metric_,
    "d-AROMA": DiagonalAROMA(init="identity", average="survival").fit(triplets).metric_,
}
scores = {name: KNNClassifier(form).fit(X[learn], y[learn]) for name, form in forms.items()}
plt.figure(figsize=(5, 3.2), layout="constrained")
plt.bar(list(scores), [knn.score(X[judge], y[judge]) for knn in scores.values()], width=0.5)
plt.ylabel("right among new documents (k-NN)")
plt.show()
