"""What can be asked of a collection, in the process that writes it and in those that read it."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.adapt.item_units import checked_items
from samewise.exceptions import InvalidInputError
from samewise.serve.collection_stores import Settings
from samewise.serve.group_commit import BusyError
from samewise.serve.item_graph import GraphKeeper
from samewise.serve.learning import Learning
from samewise.serve.searching import Question, Searching
from samewise.serve.text_encoder import TextEncoder

Encode = Callable[[Sequence[str]], Any]


class NotReadyError(InvalidInputError):
    """The collection has too few items to be searched."""


class SearchedCollection:
    """A collection that is open for searches."""

    stores: Any
    learning: Learning
    graphs: GraphKeeper
    searching: Searching
    _encode: Encode | None
    _encoder: TextEncoder | None

    @property
    def settings(self) -> Settings:
        """How it works."""
        found: Settings = self.stores.settings
        return found

    @abstractmethod
    def _ensure_started(self) -> None:
        """There is an adapter from here on, or an error is raised."""

    def _newest_encoder(self) -> TextEncoder | None:
        """The encoder of the newest start."""
        start = self.stores.events.newest("start", self.stores.events.last())
        noted = self.stores.database.setting("start")
        # What the database notes of a start is committed with the vectors of its items.
        body = json.loads(noted) if noted is not None else None if start is None else start.body
        if body is None or body["encoder"] is None:
            return None
        found: TextEncoder = self.stores.models.read_named(body["encoder"], TextEncoder)
        return found

    def _vectors_of(self, texts: Sequence[str]) -> Array | None:
        """Vectors of texts; None before the built-in encoder is fitted."""
        if self.settings.encoder == "text":
            return None if self._encoder is None else self._encoder.encode(texts)
        if self._encode is None:
            raise InvalidInputError(
                "This collection makes vectors by a function; start the service with --encoder "
                "module:function."
            )
        return checked_items(self._encode(texts), self.stores.width, "vectors").astype(np.float32)

    def query_vector(self, vector: Any, text: str | None) -> Array:
        """The vector of a query that was given as numbers or as a text."""
        if vector is not None:
            found = checked_items([vector], self.stores.width, "A query").astype(np.float32)
        elif self.settings.encoder == "given":
            raise InvalidInputError("Queries of this collection are vectors, not texts.")
        else:
            encoded = self._vectors_of([str(text)])
            if encoded is None:
                raise NotReadyError("The encoder is not fitted yet; POST start.")
            found = encoded
        return found[0]

    def search(self, question: Question, vector: Any = None, text: str | None = None) -> Any:
        """Answer a search; the first one starts the collection."""
        self.follow(question.min_seq, question.patience)
        return self.searching.answer(question, self.query_vector(vector, text), text)

    def follow(self, seq: int, patience: float = 5.0) -> None:
        """Start if that was not done, and wait until a record was learned from."""
        self._ensure_started()
        if seq > self.learning.seq and not self._reached(seq, patience):
            raise BusyError(f"The record {seq} is not learned from yet; try again.")

    def _reached(self, seq: int, patience: float) -> bool:
        """Wait for a record to be learned from, if there is one."""
        return seq <= self.stores.events.last() and self.learning.wait(seq, patience)
