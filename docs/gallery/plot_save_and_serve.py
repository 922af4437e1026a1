"""
How does it get into a service?
===============================

A learned metric is a small file that holds arrays and nothing that runs. `samewise.load` needs no
code that learns; ``form.to_onnx`` and ``samewise serve`` go on from there.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import samewise
from samewise.plots import spectrum

X, y = load_digits(return_X_y=True)
form = samewise.LDA(shrinkage=0.1).fit(X[:900], y[:900]).metric_
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "digits.samewise")
    form.save(path)
    print(f"{path.stat().st_size:,} bytes")
    loaded = samewise.load(path)

index = samewise.Index(loaded, X[:900])
closeness, rows = index.query(X[900:903], 4)
print(y[900:903], y[rows].tolist())
figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
spectrum(loaded, ax=ax)
plt.show()
