"""Streams to measure on."""

from __future__ import annotations

import numpy as np

from samewise import Pairs


def stream(n_pairs: int, d: int, *, power: float = 0.0, seed: int = 0) -> Pairs:
    """Pairs of Gaussian points with labels drawn by lot; unit length on average.

    Nothing can be learned, so most rounds update: the costliest stream there is. `power` makes the
    spectrum of the points fall off like a power law.
    """
    rng = np.random.RandomState(seed)
    spread = np.arange(1, d + 1) ** -power
    X = rng.randn(3000, d) * spread / np.linalg.norm(spread)
    return Pairs.from_labels(X, rng.randint(0, 10, 3000), n_pairs=n_pairs, random_state=seed)
