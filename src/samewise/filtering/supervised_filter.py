"""What the filters share that learn from feedback about every document."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from samewise.filtering.document_filter import Decision, Filter, Judge
from samewise.filtering.sparse_store import Rows


class SupervisedFilter(Filter, storable=False):
    """A filter that takes feedback for every document and topic, and learns from all of it.

    A judge given to `observe` is asked about every topic after the document is decided.
    """

    @abstractmethod
    def _margins(self, raw: Rows, unit: Rows) -> Sequence[float]:
        """How far above its threshold a document is, for each topic; relevant if positive."""

    @abstractmethod
    def _learn(self, i: int, id: str, raw: Rows, unit: Rows, relevant: bool) -> None:
        """Learn from a judgment about topic i."""

    def _decide(self, ids: Sequence[str], raw: Rows, judge: Judge | None) -> list[list[Decision]]:
        decisions = []
        units = self._vectors.weigh(raw)
        for k, id in enumerate(ids):
            document, unit = raw.row(k), units.row(k)
            margins = self._margins(document, unit)
            decisions.append(
                [
                    Decision(id, topic, float(margin))
                    for topic, margin in zip(self.topics_, margins, strict=True)
                    if margin > 0
                ]
            )
            if judge is None:
                continue
            answers = [judge(id, topic) for topic in self.topics_]
            for i, answer in enumerate(answers):
                if answer is not None:
                    self._learn(i, id, document, unit, bool(answer))
        return decisions

    def _take_feedback(self, document: str, topic: int, relevant: bool, raw: Rows) -> None:
        self._learn(topic, document, raw, self._vectors.weigh(raw), relevant)
