"""What learners on Dask have in common: the plain learner inside, and what goes in."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from samewise._rollback import Interrupted, unchanged_if_refused
from samewise.exceptions import InvalidInputError
from samewise.learners.learner import Learner
from samewise.scale.row_blocks import RowBlocks, row_blocks

P = TypeVar("P", bound=Learner)


class DaskLearner(BaseEstimator, Generic[P]):
    """A plain learner that learns from data in parts, on the workers of a Dask cluster.

    The parameters are those of the plain learner, and so is what was learned.
    """

    _plain: ClassVar[type[Learner]]
    _sides: ClassVar[int] = 0
    _labeled: ClassVar[bool] = True
    _refused: ClassVar[dict[str, tuple[Any, str]]] = {}
    """Parameters that must have one value only, and why."""

    def __init__(self, client: Any = None, **parameters: Any) -> None:
        self.client = client
        self._learner: P = self._plain(**parameters)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from data in parts.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, str or path
            Rows, in blocks that workers hold. A folder has a part in each of its .parquet or .npy
            files, which all workers can read.
        y : dask.array.Array, dask.dataframe.Series, str, path or None, default=None
            Labels in the same blocks. With a folder of Parquet files, the name of the column that
            holds them; with one of .npy files, a folder with as many.

        Returns
        -------
        self : object
            The fitted learner.
        """
        learner = copy.copy(self._learner)
        learner._validate_params()
        for name, (value, reason) in self._refused.items():
            if (given := getattr(learner, name)) is not value and given != value:
                raise InvalidInputError(
                    f"{type(self).__name__} takes {name}={value!r} only: {reason}. Got {given!r}."
                )
        blocks = row_blocks(X, y, self.client, sides=self._sides, labeled=self._labeled)
        interrupted = None
        try:
            with unchanged_if_refused(learner):
                self._learn(learner, blocks)
        except Interrupted as error:
            # Ctrl-C leaves what was learned up to there.
            interrupted = error
        learner.__dict__.pop("feature_names_in_", None)
        if blocks.names is not None:
            learner.feature_names_in_ = np.asarray(blocks.names, dtype=object)
        self._learner = learner
        if interrupted is not None:
            raise interrupted
        return self

    @abstractmethod
    def _learn(self, learner: P, blocks: RowBlocks) -> None:
        """Make `learner` what its `fit` would have made it."""

    def to_local(self) -> P:
        """The plain learner, with what was learned; it needs no Dask.

        Returns
        -------
        Learner
            A copy, as if it had been fitted on one machine.
        """
        return copy.copy(self._learner)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a file of the plain learner, which `samewise.load` reads.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        """
        check_is_fitted(self)
        self._learner.save(path)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The client and the parameters of the plain learner.

        Parameters
        ----------
        deep : bool, default=True
            Whether those of parameters that are learners are included.

        Returns
        -------
        dict
            By name.
        """
        return {"client": self.client, **self._learner.get_params(deep)}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters.

        Parameters
        ----------
        **parameters : dict
            The client, or parameters of the plain learner.

        Returns
        -------
        self : object
            This learner.
        """
        self.client = parameters.pop("client", self.client)
        # What the plain learner refuses changes nothing.
        clone(self._learner).set_params(**parameters)
        self._learner.set_params(**parameters)
        return self

    def __sklearn_clone__(self) -> Self:
        # The same client: it cannot be copied.
        return type(self)(self.client, **clone(self._learner).get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        return self._learner.__sklearn_is_fitted__()

    def __getattr__(self, name: str) -> Any:
        # What was learned; not what copying and pickling ask for before there is a learner.
        if name.startswith("_") or not name.endswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._learner, name)
