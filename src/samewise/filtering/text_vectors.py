"""Texts to vectors: terms, counts, and weights that follow the stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.utils import murmurhash3_32
from sklearn.utils._param_validation import Interval, StrOptions

from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.filtering.sparse_store import Rows, as_rows

_WORD = re.compile(r"\w\w+")
# Words whose column is remembered; an endless stream has ever new ones, so the table starts anew.
_MOST_WORDS = 2**20
_NOWHERE = -1
ENDLESS = 2**62


class TextVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Storable, BaseEstimator):
    """Unit tf-idf vectors of texts, for streams without end.

    A text is lower-cased and cut into words of two letters or more. Stop words are dropped, the
    rest stemmed if wanted, and each term goes to the column of its hash: nothing grows with the
    vocabulary. The columns are those of scikit-learn's ``HashingVectorizer``.

    The weights follow the stream. After n documents, of which df_j have the term j, it is weighted

        idf_j = ln((1 + n) / (1 + df_j)) + 1,

    as in scikit-learn's ``TfidfTransformer``. When n is a power of two, the weights are brought up
    to date before the next document, and hold until the next power: all vectors that are compared,
    those of topics and of documents that a filter holds included, have the same weights at any
    moment, the weights of a document do not depend on itself, and a stream is decided the same in
    whatever blocks it comes. Texts shown to `fit` count as documents seen before.

    Parameters
    ----------
    n_features : int, default=262144
        The number of columns.
    stem : {"porter"} or None, default=None
        Whether words are stemmed, by Porter's rules. "porter" needs the extra ``samewise[text]``
        (snowballstemmer).
    stop_words : {"english"}, collection of words, or None, default="english"
        Words that are dropped, before stemming. "english" are those of scikit-learn.
    idf : {"incremental"} or None, default="incremental"
        Whether terms are weighted as above. None weights every term alike.

    Attributes
    ----------
    n_documents_ : int
        n, documents counted so far.

    Examples
    --------
    >>> from samewise import TextVectors
    >>> vectors = TextVectors(n_features=16)
    >>> vectors.analyze("The cat sat on the mats.")
    ['cat', 'sat', 'mats']
    >>> vectors.transform(["the cat", "of the"]).toarray().sum(axis=1)
    array([1., 0.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "stem": [None, StrOptions({"porter"})],
        "stop_words": [None, StrOptions({"english"}), list, tuple, set, frozenset],
        "idf": [None, StrOptions({"incremental"})],
    }

    def __init__(
        self,
        n_features: int = 2**18,
        *,
        stem: str | None = None,
        stop_words: Any = "english",
        idf: str | None = "incremental",
    ) -> None:
        self.n_features = n_features
        self.stem = stem
        self.stop_words = stop_words
        self.idf = idf

    # Use by itself

    def fit(self, X: Sequence[str], y: Any = None) -> Self:
        """Start the weights from some texts.

        Parameters
        ----------
        X : sequence of str
            The texts. Without any, `fit([])`, all weights are 1.
        y : object, default=None
            Ignored.

        Returns
        -------
        TextVectors
            The transformer itself.
        """
        self._begin()
        if len(X):
            self.count(self.rows(X))
        return self

    def transform(self, X: Sequence[str]) -> Any:
        """Unit vectors of texts under the present weights.

        Parameters
        ----------
        X : sequence of str
            The texts. Before `fit`, all weights are 1.

        Returns
        -------
        sparse array of shape (n_texts, n_features)
            A row for each text, as CSR.
        """
        return self.weigh(self.rows(X)).csr()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.requires_fit = False
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_features

    def analyze(self, text: str) -> list[str]:
        """The terms of a text; usable as `analyzer` of scikit-learn's vectorizers.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        list of str
            The terms, in their order.
        """
        stop, stem = self._stop_words(), self._stemmer()
        return [stem(word) for word in _WORD.findall(text.lower()) if word not in stop]

    # Use by a filter

    def rows(self, texts: Any) -> Rows:
        """How often each term is in each text.

        Parameters
        ----------
        texts : sequence of str
            The texts.

        Returns
        -------
        Rows
            The counts, a sparse row for each text.
        """
        texts = checked_texts(texts)
        self._ready()
        columns = self._columns
        if len(columns) > _MOST_WORDS:
            columns.clear()
        found = [list(map(columns.__getitem__, _WORD.findall(text.lower()))) for text in texts]
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        flat = np.fromiter(chain.from_iterable(found), np.int64, int(lengths.sum()))
        # One number per (text, term), so that one sort finds and counts them all.
        keys = flat + np.repeat(np.arange(len(found)), lengths) * self.n_features
        keys, counts = np.unique(keys[flat != _NOWHERE], return_counts=True)
        text_of, indices = np.divmod(keys, self.n_features)
        indptr = np.searchsorted(text_of, np.arange(len(found) + 1)).astype(np.int64)
        return Rows(indptr, indices.astype(np.int32), counts.astype(np.float64), self.n_features)

    def weigh(self, rows: Rows) -> Rows:
        """Counts as unit vectors under the present weights.

        Parameters
        ----------
        rows : Rows
            Counts, as `rows` gives them.

        Returns
        -------
        Rows
            The unit vectors.
        """
        self._ready()
        if self.idf is None:
            return rows.unit()
        data = rows.data * self._weights[rows.indices]
        return Rows(rows.indptr, rows.indices, data, rows.n_features).unit()

    def refresh(self) -> bool:
        """Bring the weights up to date if it is time to.

        Returns
        -------
        bool
            Whether the weights were brought up to date.
        """
        n = self.n_documents_
        if self.idf is None or n & (n - 1) or n == self._weighed:
            return False
        self._refresh()
        return True

    def until_refresh(self) -> int:
        """Documents that may be noted before it is time.

        Returns
        -------
        int
            Number of documents.
        """
        self._ready()
        if self.idf is None:
            return ENDLESS
        return int(1 << self.n_documents_.bit_length()) - self.n_documents_

    def count(self, rows: Rows) -> None:
        """Count documents before any is decided, and bring the weights up to date.

        Parameters
        ----------
        rows : Rows
            Counts, as `rows` gives them.
        """
        self.note(rows)
        self._refresh()

    def note(self, rows: Rows) -> None:
        """Count documents that were decided.

        Parameters
        ----------
        rows : Rows
            Counts, as `rows` gives them.
        """
        np.add.at(self._df, rows.indices, 1)
        self.n_documents_ += len(rows)

    def state(self) -> State:
        """Parameters, counts, and the weights in force."""
        self._ready()
        words = self.stop_words
        words = words if words is None or isinstance(words, str) else sorted(words)
        values = {**self.get_params(), "stop_words": words}
        values |= {"n_documents": self.n_documents_, "weighed": self._weighed}
        return State({"df": self._df, "weights": self._weights}, values)

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The vectors of a saved state."""
        vectors = cls(**{name: saved.value(name) for name in cls._get_param_names()})
        words = vectors.stop_words
        right = not isinstance(words, list) or all(isinstance(word, str) for word in words)
        saved.check(right, "stop_words must be words")
        vectors._begin()
        vectors.n_documents_ = saved.count("n_documents")
        vectors._weighed = saved.count("weighed", most=vectors.n_documents_)
        vectors._df = saved.array("df", vectors.n_features, dtypes=["int64"])
        saved.check(vectors._df.min() >= 0, "df must be counts")
        vectors._weights = saved.array("weights", vectors.n_features, dtypes=["float64"])
        saved.check(np.abs(vectors._weights).max() <= 1e9, "weights must be those of terms")
        return vectors

    # Inside

    def _ready(self) -> None:
        if not hasattr(self, "_df"):
            self._begin()
        elif not hasattr(self, "_columns"):
            # A copy, or out of a pickle.
            self._columns = self._memory()

    def _begin(self) -> None:
        self._validate_params()
        self._columns = self._memory()
        self.n_documents_ = self._weighed = 0
        self._df: NDArray[np.int64] = np.zeros(self.n_features, dtype=np.int64)
        self._weights: NDArray[np.float64] = np.ones(self.n_features)

    def _memory(self) -> _Memory:
        """The column of each word that came."""
        stop, stem, d = self._stop_words(), self._stemmer(), self.n_features
        return _Memory(
            lambda word: _NOWHERE if word in stop else abs(murmurhash3_32(stem(word), seed=0)) % d
        )

    def _refresh(self) -> None:
        self._weighed = self.n_documents_
        self._weights = np.log((1 + self.n_documents_) / (1 + self._df)) + 1

    def _stop_words(self) -> frozenset[str]:
        if isinstance(self.stop_words, str):
            return ENGLISH_STOP_WORDS
        return frozenset(self.stop_words or ())

    def _stemmer(self) -> Callable[[str], str]:
        if self.stem is None:
            return str
        try:
            porter = import_module("snowballstemmer").stemmer("porter")
        except ImportError as error:
            raise ImportError(
                "stem='porter' needs the package snowballstemmer; install it with "
                "pip install 'samewise[text]', or leave stem=None."
            ) from error
        return porter.stemWord

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_columns"}


class GivenVectors(Storable):
    """Vectors as they are, or as scikit-learn's fitted vectorizer makes them, at unit length."""

    def __init__(self, vectorizer: Any = None, n_features: int | None = None) -> None:
        self.vectorizer, self.n_features = vectorizer, n_features
        self.of_texts = vectorizer is not None

    def rows(self, documents: Any) -> Rows:
        """The vectors of texts, or the rows of a matrix."""
        if self.of_texts and self.vectorizer is None:
            raise InvalidInputError(
                "This filter was saved with a vectorizer of scikit-learn, which is not in the "
                "file. Read it with samewise.filtering.load(path, vectorizer)."
            )
        if self.of_texts:
            documents = self.vectorizer.transform(checked_texts(documents))
        rows = as_rows(documents, self.n_features)
        self.n_features = rows.n_features
        return rows

    def state(self) -> State:
        """The number of features; a vectorizer is not in a file."""
        return State(values={"n_features": self.n_features, "of_texts": self.of_texts})

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The vectors of a saved state, without a vectorizer."""
        vectors = cls(n_features=saved.count("n_features", least=1))
        vectors.of_texts = saved.flag("of_texts")
        return vectors

    def weigh(self, rows: Rows) -> Rows:
        """Unit vectors."""
        return rows.unit()

    def until_refresh(self) -> int:
        """The weights never change."""
        return ENDLESS

    def count(self, rows: Rows) -> None:
        """Nothing to count."""

    def note(self, rows: Rows) -> None:
        """Nothing to count."""

    def refresh(self) -> bool:
        """Never."""
        return False


class _Memory(dict[str, int]):
    """Computes a value once per word."""

    def __init__(self, function: Callable[[str], int]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, word: str) -> int:
        value = self[word] = self._function(word)
        return value


def checked_texts(texts: Any) -> list[str]:
    """Texts as a list; anything else is refused."""
    if isinstance(texts, str) or not hasattr(texts, "__iter__"):
        raise InvalidInputError(
            f"Give several texts as a list of strings. Got {type(texts).__name__}; put one text "
            "into a list, or use observe."
        )
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInputError(
                f"A document must be a text here, but number {i} is a {type(text).__name__}; the "
                "topics were given as texts."
            )
    return texts
