"""
Does each class need a metric of its own?
=========================================

`MultiMetricLMNN` learns one for each class. The ellipses are what each calls near.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from samewise import LMNN, KNNClassifier, MultiMetricLMNN
from samewise.plots import class_ellipses, projection

X, y = load_iris(return_X_y=True)
one = LMNN(random_state=0).fit(X[::2], y[::2])
each = MultiMetricLMNN(random_state=0).fit(X[::2], y[::2])
for learner in (one, each):
    right = KNNClassifier(learner.metric_, rule="energy").fit(X[::2], y[::2])
    print(f"{type(learner).__name__}: {right.score(X[1::2], y[1::2]):.1%} right")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
projection(one.metric_, X[1::2], y[1::2], ax=axes[0])
axes[0].set_title("one metric")
class_ellipses(each.metric_, X[1::2], y[1::2], ax=axes[1])
axes[1].set_title("one for each class")
plt.show()
