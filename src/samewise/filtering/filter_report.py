"""What a filter did with a stream: counts, and scores where there are judgments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from samewise.exceptions import InvalidInputError
from samewise.filtering.document_filter import Decision
from samewise.filtering.documents import Judgments
from samewise.scores import FilteringScores, FilteringTally


class FilterReport:
    """Counts of what a filter did, and where there are judgments, scores along the stream.

    Parameters
    ----------
    topics : sequence of str
        The ids of the topics.
    judgments : Judgments or None, default=None
        Which documents are relevant to which topics. Documents without a judgment are not scored.
    every : int, default=1000
        Documents between two scores.

    Attributes
    ----------
    evolution : list of FilteringScores
        The scores after every `every` documents; `summary` adds those after the last.

    Examples
    --------
    >>> from samewise.filtering import Decision, FilterReport, Judgments
    >>> report = FilterReport(["gold"], Judgments({"a": {"gold": True}, "b": {"gold": False}}))
    >>> report.add("a", [Decision("a", "gold", 0.5)])
    >>> report.add("b", [])
    >>> report.summary()["micro"]["f"]
    1.0
    """

    def __init__(
        self, topics: Sequence[str], judgments: Judgments | None = None, every: int = 1000
    ) -> None:
        self._topics, self._judge, self._every = topics, judgments, every
        self._tally = FilteringTally(len(topics))
        self._waiting: list[tuple[str, list[str]]] = []
        self._assigned = dict.fromkeys(topics, 0)
        self._n_documents = self._n_asked = 0
        self.evolution: list[FilteringScores] = []
        if judgments is not None and not judgments.topics & set(topics):
            raise InvalidInputError(
                "None of the judgments is about any of the topics; check that they have the same "
                f"names, as {topics[0]!r}."
            )

    def add(self, document: str, decisions: Sequence[Decision]) -> None:
        """Count one document.

        Parameters
        ----------
        document : str
            The id of the document.
        decisions : sequence of Decision
            What was decided about it.
        """
        self._n_documents += 1
        retrieved = [d.topic for d in decisions if d.retrieved]
        self._n_asked += sum(d.action == "ask" for d in decisions)
        for topic in retrieved:
            self._assigned[topic] += 1
        if self._judge is not None:
            if document in self._judge:
                self._waiting.append((document, retrieved))
            if self._n_documents % self._every == 0:
                self._score(self._judge)

    def _score(self, judge: Judgments) -> None:
        shape = len(self._waiting), len(self._topics)
        got, wanted = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for k, (document, retrieved) in enumerate(self._waiting):
            got[k] = [topic in retrieved for topic in self._topics]
            wanted[k] = [judge(document, topic) is True for topic in self._topics]
        self._tally.add(got, wanted)
        self._waiting = []
        if self._tally.n_documents:
            self.evolution.append(self._tally.scores())

    def summary(self, n_skipped: int = 0) -> dict[str, Any]:
        """What the filter did so far.

        Parameters
        ----------
        n_skipped : int, default=0
            Documents that could not be used, which the report does not see.

        Returns
        -------
        dict
            The number of "documents", of those "skipped", of questions "asked", and of documents
            "assigned" to each topic. Where documents were judged, also how many were "judged", and
            the "micro" and "macro" averages of their scores.
        """
        found: dict[str, Any] = {
            "documents": self._n_documents,
            "skipped": n_skipped,
            "asked": self._n_asked,
            "assigned": self._assigned.copy(),
        }
        if self._judge is not None and self._waiting:
            self._score(self._judge)
        if self.evolution:
            last = self.evolution[-1]
            found |= {"judged": last.n_documents, "micro": last.micro, "macro": last.macro}
        return found
