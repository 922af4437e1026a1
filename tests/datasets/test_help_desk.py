"""The collection of short texts: whole, and as hard as it is said to be."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from samewise.datasets import load_help_desk


def test_it_has_as_many_texts_of_each_intent():
    texts, intents, names = load_help_desk()
    assert len(texts) == len(set(texts)) == len(intents) == 658
    assert np.bincount(intents).tolist() == [14] * 47
    assert len(set(names)) == 47
    assert all(re.fullmatch(r"[A-Z].*[.?]", text) and len(text) < 70 for text in texts)


def test_words_alone_do_not_say_what_belongs_together():
    texts, intents, _ = load_help_desk()
    words = [set(re.findall(r"[a-z]+", text.lower())) for text in texts]
    common = Counter(word for each in words for word in each)
    rare = [{word for word in each if common[word] < 60} for each in words]
    shared = np.array([[len(a & b) for b in rare] for a in rare])
    np.fill_diagonal(shared, 0)
    same = intents[:, None] == intents
    # Most pairs of one intent share no word that says something, and most that do share one differ.
    assert (shared[same] == 0).mean() > 0.5
    assert same[shared > 0].mean() < 0.3
