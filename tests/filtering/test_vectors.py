"""Texts to vectors."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import SkipTestWarning
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from samewise.exceptions import InvalidInputError
from samewise.filtering import TextVectors, TopicFilter
from samewise.filtering.sparse_store import Rows

TEXTS = ["The cat sat on the mat, the CAT!", "", "of the", "Dogs and cats; ça va — naïve 42 x"]


def test_counts_are_those_of_scikit_learn():
    expected = HashingVectorizer(
        n_features=64, alternate_sign=False, norm=None, stop_words="english"
    ).transform(TEXTS)
    rows = TextVectors(64).fit([]).rows(TEXTS)
    np.testing.assert_array_equal(rows.dense(), expected.toarray())


def test_weights_are_those_of_scikit_learn():
    vectors = TextVectors(64).fit(TEXTS)
    counts = vectors.rows(TEXTS).csr()
    expected = TfidfTransformer().fit_transform(counts)
    np.testing.assert_allclose(vectors.transform(TEXTS).toarray(), expected.toarray(), rtol=1e-12)


def test_weights_follow_the_stream_at_powers_of_two(documents):
    vectors = TextVectors(256).fit([])
    texts = [d.text for d in documents[:40]]
    for n, text in enumerate(texts):
        rows = vectors.rows([text])
        counted = 1 << (n.bit_length() - 1) if n else 0
        df = np.bincount(vectors.rows(texts[:counted]).indices, minlength=256)
        weights = np.log((1 + counted) / (1 + df)) + 1 if counted else np.ones(256)
        weighted = rows.dense() * weights
        norm = np.linalg.norm(weighted) or 1.0
        np.testing.assert_allclose(vectors.weigh(rows).dense(), weighted / norm, rtol=1e-12)
        vectors.note(rows)
        assert vectors.refresh() == (n + 1 in (1, 2, 4, 8, 16, 32))
        assert not vectors.refresh()


def test_all_weights_alike():
    vectors = TextVectors(64, idf=None)
    np.testing.assert_allclose(np.linalg.norm(vectors.transform(TEXTS).toarray(), axis=1) % 1, 0)
    assert vectors.until_refresh() > 10**9


def test_porter_and_stop_words():
    pytest.importorskip("snowballstemmer")
    vectors = TextVectors(stem="porter")
    assert vectors.analyze("The relational databases were hopping") == ["relat", "databas", "hop"]
    assert TextVectors(stop_words=["cat"]).analyze("the cat") == ["the"]
    same = vectors.rows(["connected"]).indices, vectors.rows(["connections"]).indices
    np.testing.assert_array_equal(*same)


def test_a_missing_stemmer_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(ImportError, match=r"pip install 'samewise\[text\]'"):
        TextVectors(stem="porter").fit([])


def test_terms_serve_scikit_learn_too():
    counts = CountVectorizer(analyzer=TextVectors().analyze).fit(["The cats sat"])
    assert sorted(counts.vocabulary_) == ["cats", "sat"]


@pytest.mark.parametrize(
    "wrong", [{"n_features": 0}, {"stem": "lovins"}, {"stop_words": "klingon"}, {"idf": "static"}]
)
def test_parameters_out_of_range(wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of TextVectors"):
        TextVectors(**wrong).fit([])


def test_pickles_go_on():
    vectors = TextVectors(64).fit(TEXTS)
    again = pickle.loads(pickle.dumps(vectors))
    np.testing.assert_array_equal(
        again.transform(TEXTS).toarray(), vectors.transform(TEXTS).toarray()
    )


def test_scikit_learns_checks():
    # Text is not among the data that scikit-learn's other checks have.
    with pytest.warns(SkipTestWarning, match="requires input"):
        results = check_estimator(TextVectors(), on_fail=None)
    assert {result["status"] for result in results} == {"passed"}
    tags = get_tags(TextVectors())
    assert tags.input_tags.string and not tags.input_tags.two_d_array and not tags.requires_fit
    assert tags.transformer_tags is not None


def test_a_step_of_a_pipeline():
    pipeline = make_pipeline(TextVectors(8), TruncatedSVD(2, random_state=0))
    assert pipeline.fit_transform(TEXTS).shape == (4, 2)
    names = ["truncatedsvd0", "truncatedsvd1"]
    np.testing.assert_array_equal(pipeline.get_feature_names_out(), names)
    np.testing.assert_array_equal(
        TextVectors(2).get_feature_names_out(), ["textvectors0", "textvectors1"]
    )
    clone(TextVectors(8).fit(TEXTS)).transform(TEXTS)


def test_only_texts():
    with pytest.raises(InvalidInputError, match="number 1 is a int"):
        TextVectors().transform(["a", 3])
    with pytest.raises(InvalidInputError, match="as a list of strings"):
        TextVectors().transform("a text")


def test_the_memory_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr("samewise.filtering.text_vectors._MOST_WORDS", 10)
    vectors = TextVectors(64).fit([])
    for k in range(30):
        vectors.rows([f"word{k} other{k}"])
    assert len(vectors._columns) <= 12


def test_a_filter_uses_a_copy_of_the_vectorizer(topics, documents):
    vectors = TextVectors(512).fit([])
    TopicFilter(vectorizer=vectors).fit(topics).observe_many(documents)
    assert vectors.n_documents_ == 0


def test_scikit_learns_vectorizer(topics, documents, judge):
    texts = [d.text for d in documents]
    fitted = TfidfVectorizer().fit(texts)
    by_text = TopicFilter(vectorizer=fitted).fit(topics)
    X = fitted.transform(topics.values())
    by_vector = TopicFilter().fit(dict(zip(topics, X, strict=True)))
    ids = [d.id for d in documents]
    found = by_text.observe_many(documents, judge=judge)
    assert found == by_vector.observe_many(fitted.transform(texts), ids, judge)
    assert any(found)


def test_rows_join_and_cut():
    rows = TextVectors(64).fit([]).rows(TEXTS)
    again = Rows.empty(64).joined(rows[:1], rows[1:3], rows[3:])
    np.testing.assert_array_equal(again.dense(), rows.dense())
    np.testing.assert_array_equal(rows.without(0).dense(), rows.dense()[1:])
    assert len(rows[2:2]) == 0
