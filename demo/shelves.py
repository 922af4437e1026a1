"""The two collections of the demo: letters to a help desk, and handwritten digits."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from samewise.datasets import load_help_desk

WRITTEN, SENTENCES = 10, 14
"""Of the sentences of an intent, so many are in letters; the others are questions."""
IN_A_LETTER = (0, 3, 7)
"""A letter has three of these ten: the i-th, the third and the seventh after it."""
QUESTIONS = 297
"""Digits that are asked for and not in the collection."""


@dataclass(frozen=True, eq=False)
class Shelf:
    """A collection, and questions to it.

    Attributes
    ----------
    name, about : str
    encoder : str
        Where vectors come from.
    ids, payloads, vectors
        The items; vectors are None where the service makes them of texts.
    groups : array of int
        What each item is about.
    questions : list
        Texts, or vectors.
    wanted : array of int
        What each question is about.
    asked : array of bool
        Which questions users ask while they teach; the others are only used to measure.
    """

    name: str
    about: str
    encoder: str
    ids: list[str]
    payloads: list[dict[str, Any]]
    vectors: NDArray[np.float32] | None
    groups: NDArray[np.int64]
    questions: list[Any]
    wanted: NDArray[np.int64]
    asked: NDArray[np.bool_]


def help_desk() -> Shelf:
    """Letters of three sentences, and questions of one that is in no letter."""
    texts, intents, names = load_help_desk()
    place = np.arange(len(texts)) % SENTENCES
    written = np.flatnonzero(place < WRITTEN)
    letters = []
    for row in written.tolist():
        first, i = row - int(place[row]), int(place[row])
        letters.append(" ".join(texts[first + (i + step) % WRITTEN] for step in IN_A_LETTER))
    questions = np.flatnonzero(place >= WRITTEN)
    return Shelf(
        "help-desk",
        "letters to a help desk",
        "text",
        [f"letter-{i}" for i in range(len(letters))],
        [
            {"text": letter, "about": names[intent]}
            for letter, intent in zip(letters, intents[written], strict=True)
        ],
        None,
        intents[written],
        [texts[row] for row in questions],
        intents[questions],
        place[questions] < SENTENCES - 1,
    )


def digits() -> Shelf:
    """Images of handwritten digits; 297 others are asked for."""
    X, y = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(X))
    items, questions = order[QUESTIONS:], order[:QUESTIONS]
    vectors = normalize(X - X[items].mean(axis=0)).astype(np.float32)
    return Shelf(
        "digits",
        "handwritten digits",
        "given",
        [f"image-{row}" for row in items],
        [
            {"title": f"image {row}", "digit": int(y[row]), "image": png(X[row].reshape(8, 8))}
            for row in items
        ],
        vectors[items],
        y[items],
        list(vectors[questions]),
        y[questions],
        np.arange(QUESTIONS) < 200,
    )


def png(pixels: NDArray[np.float64]) -> str:
    """An image as an address that holds it."""
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, pixels, cmap="gray_r", vmin=0, vmax=16, format="png")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
