"""A small stream of real-looking texts."""

from __future__ import annotations

import numpy as np
import pytest

from samewise.filtering import Document

WORDS = {
    "cocoa": "cocoa beans harvest chocolate crop bahia plantation butter".split(),
    "gold": "gold mine ounce bullion ore metal jewel carat".split(),
    "ships": "ship port strike harbor vessel cargo sailor freight".split(),
}
COMMON = "market price week company said trade report month year dollar bank new".split()


@pytest.fixture(scope="session")
def topics():
    return {name: " ".join(words[:5]) for name, words in WORDS.items()}


def make_documents(n, seed=0):
    """Documents d0, d1, … and the topics they are about."""
    rng = np.random.default_rng(seed)
    names = list(WORDS)
    documents, about = [], []
    for k in range(n):
        topic = names[rng.integers(3)] if rng.random() < 0.4 else None
        text = list(rng.choice(COMMON, rng.integers(0, 9)))
        if topic is not None:
            text += list(rng.choice(WORDS[topic], rng.integers(3, 9)))
        documents.append(Document(f"d{k}", " ".join(text)))
        about.append([] if topic is None else [topic])
    return documents, about


@pytest.fixture(scope="session")
def documents():
    return make_documents(400)[0]


@pytest.fixture(scope="session")
def judge():
    about = make_documents(400)[1]
    return lambda document, topic: topic in about[int(document[1:])]
