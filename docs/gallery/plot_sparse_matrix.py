"""
Which features belong together?
===============================

`SDML` learns a matrix whose entries beside the diagonal are exactly 0 where they say little. The
more a nonzero entry costs, the fewer there are.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from samewise import SDML
from samewise.plots import matrix_heatmap

data = load_wine()
names = [name.replace("_", " ")[:12] for name in data.feature_names]
figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, sparsity in zip(axes, (0.01, 0.05), strict=True):
    form = SDML(sparsity=sparsity, random_state=0).fit(scale(data.data), data.target).metric_
    matrix_heatmap(form, feature_names=names, ax=ax)
    zeros = (form.matrix == 0).mean()
    ax.set_title(f"sparsity={sparsity:g}: {zeros:.0%} zeros")
plt.show()
