"""What every learner of pairs does with labeled examples: sample pairs, and hold some out."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.files.state import Saved
from samewise.learners.pair_judge import PairJudge
from samewise.supervision.purposes import SampledPairs, sampled_pairs
from samewise.supervision.sampling import Nearness


class PairSampler(PairJudge, storable=False):
    """A learner of pairs that samples them from labels, for a purpose."""

    purpose: str
    n_neighbors: int
    n_pairs: int | None

    def _sampled(
        self,
        X: Matrix,
        y: NDArray[Any],
        random: Any,
        sample_weight: Any = None,
        merge: bool = False,
    ) -> SampledPairs:
        """Pairs to learn from, and those held out for the threshold."""
        return sampled_pairs(
            X,
            y,
            purpose=self.purpose,
            n_neighbors=self.n_neighbors,
            n_pairs=self._n_pairs(y),
            form=self._nearness(X) if self.purpose == "neighbors" else None,
            merge_duplicates=merge,
            sample_weight=sample_weight,
            random_state=random,
        )

    def _n_pairs(self, y: NDArray[Any]) -> int | None:
        """How many pairs to sample at most; None is what `sampled_pairs` does by default."""
        return self.n_pairs

    def _nearness(self, X: Matrix) -> Nearness | None:
        """What near means; None is the Euclidean distance."""
        return None

    @classmethod
    def _former_parameters(cls, saved: Saved) -> dict[str, Any]:
        """`purpose` took the place of `strategy`, which only some learners had."""
        if saved.has("purpose"):
            return {}
        strategies = ("balanced", "random", "nearest")
        strategy = saved.choice("strategy", strategies) if saved.has("strategy") else "balanced"
        former = {"purpose": "neighbors" if strategy == "nearest" else "verification"}
        return former if saved.has("n_neighbors") else {**former, "n_neighbors": 5}
