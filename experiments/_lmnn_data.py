"""The nine sets of `lmnn_table1`, split and reduced as in the paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import zoom
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize

from benchmarks.lmnn import deskewed
from samewise._typing import Array, Indices
from samewise.datasets import load

Rows = Any
"""An array or a CSR matrix."""


class Split(NamedTuple):
    """One split: the inputs, the inputs that LMNN gets, and the labels; training part first."""

    inputs: tuple[Rows, Rows]
    reduced: tuple[Array, Array]
    labels: tuple[Indices, Indices]

    @property
    def train(self) -> tuple[Array, Indices]:
        return self.reduced[0], self.labels[0]

    @property
    def test(self) -> tuple[Array, Indices]:
        return self.reduced[1], self.labels[1]


class Set(NamedTuple):
    """A column of Table 1."""

    split: Callable[[int], Split]
    n_splits: int
    validation: float | None = None
    """The part of the training examples held out to stop a single metric early."""

    @property
    def alone(self) -> bool:
        """Whether its one split is learned with two threads, rather than several side by side."""
        return self.n_splits == 1


def principal(A: Array, B: Array, n_components: int, n_dropped: int = 0) -> tuple[Array, Array]:
    """Both on the leading principal components of A, without the first `n_dropped`."""
    mean = A.mean(axis=0)
    V = np.linalg.svd(A - mean, full_matrices=False)[2] if len(A) < A.shape[1] else _axes(A - mean)
    W = V[n_dropped:n_components].T.astype(A.dtype)
    return (A - mean) @ W, (B - mean) @ W


def _axes(A: Array) -> Array:
    return np.linalg.eigh((A.T @ A).astype(np.float64))[1][:, ::-1].T


def at_random(name: str, n_train: int, n_test: int) -> Callable[[int], Split]:
    """So many examples for training and so many of the others for testing, as they are."""

    def split(i: int) -> Split:
        bunch = _loaded(name)
        order = np.random.RandomState(i).permutation(len(bunch.target))
        return _unreduced(bunch, order[:n_train], order[n_train : n_train + n_test])

    return split


def _unreduced(bunch: Any, first: Indices, second: Indices) -> Split:
    inputs = bunch.data[first], bunch.data[second]
    return Split(inputs, inputs, (bunch.target[first], bunch.target[second]))


@cache
def _loaded(name: str) -> Any:
    return load(name)


def within_classes(y: Indices, part: float, i: int) -> tuple[Indices, Indices]:
    """A random part of every class, and the rest."""
    random, first, second = np.random.RandomState(i), [], []
    for c in np.unique(y):
        members = random.permutation(np.flatnonzero(y == c))
        n = round(part * len(members))
        first.append(members[:n])
        second.append(members[n:])
    return np.concatenate(first), np.concatenate(second)


def faces_of_yale(i: int) -> Split:
    """45 of 64 images of a person for training; components 6 to 200."""
    bunch = _loaded("yaleb32")
    first, second = within_classes(bunch.target, 45 / 64, i)
    split = _unreduced(bunch, first, second)
    A, B = (rows / 255 for rows in split.inputs)
    return split._replace(inputs=(A, B), reduced=principal(A, B, 200, n_dropped=5))


def faces_of_olivetti(i: int) -> Split:
    """7 of 10 images of a person for training; 38 × 31 pixels, 200 components."""
    bunch = _loaded("olivetti")
    first, second = within_classes(bunch.target, 0.7, i)
    X = _small_faces()
    A, B = X[first], X[second]
    labels = bunch.target[first], bunch.target[second]
    return Split((A, B), principal(A, B, 200), labels)


@cache
def _small_faces() -> Array:
    images = _loaded("olivetti").data.reshape(-1, 64, 64) / 255
    factors = (1, 38 / 64, 31 / 64)
    return zoom(images, factors, order=1, grid_mode=True, mode="nearest").reshape(len(images), -1)


def spoken_letters(_: int) -> Split:
    """The given split; 172 components."""
    bunch = load("isolet", dtype=np.float32)
    split = _unreduced(bunch, np.flatnonzero(bunch.train), np.flatnonzero(~bunch.train))
    return split._replace(reduced=principal(*split.inputs, 172))


def news(i: int) -> Split:
    """Counts of 20 000 words; weighted, 200 components of unit length.

    The weights are those under which the errors of the reduced rows come near to the paper's.
    """
    counts, y = _word_counts()
    order = np.random.RandomState(i).permutation(len(y))
    first, second = order[:13179], order[13179 : 13179 + 5648]
    A, B = weighted(counts[first], counts[second])
    svd = TruncatedSVD(200, random_state=0).fit(A)
    reduced = normalize(svd.transform(A)), normalize(svd.transform(B))
    return Split((counts[first], counts[second]), reduced, (y[first], y[second]))


def weighted(A: Rows, B: Rows) -> tuple[Rows, Rows]:
    """log(1 + count) · idf of the first rows, of unit length, as float32."""
    tfidf = TfidfTransformer().fit(A)
    return tuple(tfidf.transform(rows.log1p()).astype(np.float32) for rows in (A, B))


@cache
def _word_counts() -> tuple[Rows, Indices]:
    bunch = load("news20_18828")
    counter = CountVectorizer(max_features=20000, dtype=np.float64)
    return counter.fit_transform(bunch.data), bunch.target


def digits(straight: Callable[[Array], Array], n_components: int) -> Callable[[int], Split]:
    """MNIST, the given split: images made upright, and their principal components."""

    def split(_: int) -> Split:
        bunch = load("mnist", dtype=np.float32)
        X, y, train = straight(bunch.data / 255), bunch.target, bunch.train
        A, B = X[train], X[~train]
        return Split((A, B), principal(A, B, n_components), (y[train], y[~train]))

    return split


def sheared(images: Array) -> Array:
    """Images with the center of the ink in the middle and its principal axis upright.

    Values between pixels are interpolated, in both directions.
    """
    return np.concatenate([_sheared(images[s : s + 2000]) for s in range(0, len(images), 2000)])


def _sheared(images: Array) -> Array:
    n, size = len(images), 28
    I = images.reshape(n, size, size)  # noqa: E741
    at, middle = np.arange(size), (size - 1) / 2
    mass = I.sum(axis=(1, 2))
    y0, x0 = (I.sum(axis=2) @ at) / mass, (I.sum(axis=1) @ at) / mass
    rows = at - y0[:, None]
    slant = np.einsum("nij,ni,nj->n", I, rows, at - x0[:, None])
    slant /= np.einsum("nij,ni->n", I, rows**2)
    y = (at - middle) + y0[:, None]
    x = (at - middle) + (x0[:, None] + slant[:, None] * (at - middle))[:, :, None]
    y = np.broadcast_to(y[:, :, None], x.shape)
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    out = np.zeros_like(I)
    which = np.arange(n)[:, None, None]
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        i, j = top + down, left + right
        share = (1 - abs(y - i)) * (1 - abs(x - j))
        inside = (i >= 0) & (i < size) & (j >= 0) & (j < size)
        out += np.where(inside, share * I[which, i % size, j % size], 0).astype(I.dtype)
    return out.reshape(n, -1)


SETS = {
    "mnist": Set(digits(deskewed, 164), 1),
    "mnist_sheared": Set(digits(sheared, 50), 1),
    "letters": Set(at_random("letter", 14000, 6000), 10),
    "20news": Set(news, 10),
    "isolet": Set(spoken_letters, 1),
    "yFaces": Set(faces_of_yale, 10, 0.3),
    "bal": Set(at_random("balance_scale", 375, 161), 100),
    "oFaces": Set(faces_of_olivetti, 100, 0.3),
    "wine": Set(at_random("wine", 106, 46), 100),
    "iris": Set(at_random("iris", 90, 38), 100, 0.3),
}
"""The columns of Table 1, in its order, with a second MNIST."""
