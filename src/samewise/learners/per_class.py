"""One similarity per class: the mode "binary" of learners of similarities."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form

__all__ = ["PerClass"]


class PerClass:
    """What mode="binary" adds: a clone of the learner for each class, against all others."""

    mode: str
    classes_: NDArray[Any]
    learners_: list[Any]

    def _one_by_one(self, X: Matrix, y: NDArray[Any]) -> None:
        """Learn each class against the rest, from checked examples."""
        classes = np.unique(y)
        single = clone(self).set_params(mode="multiclass")
        self.learners_ = [clone(single).fit(X, (y == c).astype(int)) for c in classes]
        self.classes_ = classes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to a file that `samewise.load` reads; see `LMNN.save`, `OASIS.save`.

        With mode="binary", save the single learners_ or metrics_.

        Parameters
        ----------
        path : str or path
            File to write. One that exists is replaced, whole or not at all.
        """
        if hasattr(self, "learners_"):
            raise InvalidInputError(
                f"A {type(self).__name__} with mode='binary' is many learners; save each of "
                "learners_, or metrics_."
            )
        super().save(path)  # type: ignore[misc]

    @property
    def metrics_(self) -> list[Form]:
        """The similarity of each class, in the order of `classes_`; only for mode="binary"."""
        if not hasattr(self, "learners_"):
            raise AttributeError(
                f"{type(self).__name__} has metrics_ after fit with mode='binary'; with "
                "mode='multiclass' it has one metric_."
            )
        return [learner.metric_ for learner in self.learners_]

    def _check_single(self) -> None:
        """Refuse, as a missing attribute, what needs one similarity for all classes."""
        if hasattr(self, "learners_"):
            raise AttributeError(
                f"{type(self).__name__} with mode='binary' has one similarity for each class: use "
                "metrics_, or decide with PerClassClassifier."
            )
