"""Vectors of texts without a model to download: TF-IDF and its leading singular directions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize

from samewise._typing import Array
from samewise.exceptions import DegenerateInputError
from samewise.files.container import parse
from samewise.files.state import Saved, State
from samewise.files.storable import Storable

MOST_TERMS = 50_000
WIDTH = 256


class TextEncoder(Storable):
    """Texts to unit vectors: words weighed by 1 + log tf and idf, mapped to the leading directions.

    A text with no known word is the zero vector. Where there are fewer directions than `width`, the
    others are 0, so that the width is the same for few texts and for many.

    Parameters
    ----------
    terms : list of str
        The vocabulary.
    idf : array of shape (n_terms,)
        How rare each term is.
    components : array of float32 of shape (width, n_terms)
        The leading directions.

    Examples
    --------
    >>> from samewise.serve.text_encoder import TextEncoder
    >>> encoder = TextEncoder.fit(["a red fox", "a blue sea", "the red sea"], width=4)
    >>> encoder.encode(["the fox", "unheard"]).shape
    (2, 4)
    """

    def __init__(self, terms: list[str], idf: NDArray[Any], components: Array) -> None:
        self.terms, self.idf, self.components = terms, idf, components
        self._counts = CountVectorizer(
            vocabulary={term: i for i, term in enumerate(terms)}, dtype=np.float64
        )

    @property
    def width(self) -> int:
        """The number of features of a vector."""
        return len(self.components)

    @classmethod
    def fit(cls, texts: Sequence[str], width: int = WIDTH) -> Self:
        """The encoder of a collection of texts.

        Parameters
        ----------
        texts : sequence of str
            The texts.
        width : int, default=256
            The number of features of a vector.

        Returns
        -------
        TextEncoder
            The encoder.
        """
        counts = CountVectorizer(max_features=MOST_TERMS, dtype=np.float64)
        try:
            found = counts.fit_transform(texts)
        except ValueError as error:
            raise DegenerateInputError(
                f"The texts have no words of two letters or more to learn from: {error}."
            ) from error
        terms = [str(term) for term in counts.get_feature_names_out()]
        idf = TfidfTransformer(sublinear_tf=True).fit(found).idf_
        encoder = cls(terms, idf, np.zeros((width, len(terms)), dtype=np.float32))
        weighed = encoder._weighed(texts)
        rank = min(width, len(terms) - 1, len(texts) - 1)
        if rank < 1:
            raise DegenerateInputError("Texts need at least two different words to differ in.")
        svd = TruncatedSVD(rank, random_state=0).fit(weighed)
        encoder.components[:rank] = svd.components_
        return encoder

    def encode(self, texts: Sequence[str]) -> Array:
        """Unit vectors of texts.

        Parameters
        ----------
        texts : sequence of str
            The texts.

        Returns
        -------
        array of float32 of shape (n, width)
            The vectors.
        """
        found = self._weighed(texts) @ self.components.T.astype(np.float64)
        return normalize(np.asarray(found)).astype(np.float32)

    def _weighed(self, texts: Sequence[str]) -> Any:
        counts = self._counts.transform(texts)
        counts.data = (1.0 + np.log(counts.data)) * self.idf[counts.indices]
        return normalize(counts)

    def state(self) -> State:
        """Terms as JSON, and the arrays."""
        terms = np.frombuffer(json.dumps(self.terms).encode(), dtype=np.uint8)
        return State({"terms": terms, "idf": self.idf, "components": self.components})

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The encoder of that state.

        Parameters
        ----------
        saved : Saved
            The state, read from a file.

        Returns
        -------
        TextEncoder
            The encoder.
        """
        terms = parse(saved.array("terms", None, dtypes=["uint8"]).tobytes())
        right = isinstance(terms, list) and all(type(term) is str for term in terms)
        saved.check(right and len(set(terms)) == len(terms), "terms must be different texts")
        idf = saved.array("idf", len(terms), dtypes=["float64"])
        return cls(terms, idf, saved.array("components", None, len(terms), dtypes=["float32"]))
