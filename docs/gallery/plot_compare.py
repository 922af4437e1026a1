"""
Does learning help at all?
==========================

Often, and not always. Here each learner has the same ten splits; bars are standard errors.
``samewise compare`` does the like for one table, with a test of what could be chance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from samewise import LDA, RCA, SDML, Euclidean, KNNClassifier

X, y = load_breast_cancer(return_X_y=True)
errors = {}
for seed in range(10):
    A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(A)
    A, B = scaler.transform(A), scaler.transform(B)
    for learner in (Euclidean(), RCA(shrinkage=0.1), LDA(shrinkage=0.1), SDML(random_state=0)):
        right = KNNClassifier(learner, n_neighbors=3).fit(A, a).score(B, b)
        errors.setdefault(type(learner).__name__, []).append(100 * (1 - right))

plt.figure(figsize=(6, 3.2), layout="constrained")
means = [np.mean(found) for found in errors.values()]
spread = [np.std(found) / np.sqrt(len(found)) for found in errors.values()]
plt.barh(list(errors), means, xerr=spread)
plt.gca().invert_yaxis()
plt.xlabel("errors of 3-NN on held-out rows, percent")
plt.show()
