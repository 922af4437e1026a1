"""Streams of pairs and triplets in Parquet files, learned by one process, out of core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from numbers import Integral
from pathlib import Path
from typing import TypeVar

import numpy as np

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.files import container
from samewise.files.storable import made
from samewise.learners.online.online_learner import OnlineLearner
from samewise.learners.online.triplet_learner import TripletLearner
from samewise.scale.row_blocks import SIDES, check_columns, parquet, vectors

TRIPLETS = ("anchor", "positive", "negative")

O = TypeVar("O", bound=OnlineLearner)  # noqa: E741 (an online learner)


def learn_stream(
    learner: O,
    folder: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 50,
    block: int = 8192,
) -> O:
    """Learn from a folder of Parquet files, block by block, with `partial_fit`.

    The files are read in the order of their names; no more than a block is in memory. Triplets have
    the columns "anchor", "positive" and "negative", pairs "left", "right" and "y" (±1); vectors are
    lists of numbers.

    Parameters
    ----------
    learner : OnlineLearner
        One of triplets, such as `FactoredAROMA`, or of pairs, such as `PassiveAggressive`, that has
        not learned yet. It is not changed.
    folder : str or path
        Where the files are.
    checkpoint : str or path, default=None
        A file of the learner, replaced now and then. If it is there at the beginning, learning goes
        on from it: where the run before ended, with the same bits as if it had not. Files may have
        come at the end of the stream since.
    every : int, default=50
        Blocks between two checkpoints; there is one at the end too.
    block : int, default=8192
        Rows that are learned at once.

    Returns
    -------
    OnlineLearner
        One that has learned from all files.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, pyarrow as pa, pyarrow.parquet
    >>> from samewise import PassiveAggressive
    >>> from samewise.scale import learn_stream
    >>> X = np.random.RandomState(0).normal(size=(2, 60, 3))
    >>> columns = {"left": list(X[0]), "right": list(X[1]), "y": np.tile([1, -1], 30)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pa.parquet.write_table(pa.table(columns), os.path.join(folder, "0.parquet"))
    ...     learn_stream(PassiveAggressive(), folder, block=16).n_seen_
    60
    """
    for name, value in (("every", every), ("block", block)):
        if not isinstance(value, Integral) or value < 1:
            raise InvalidInputError(f"{name} must be an integer of at least 1. Got {value!r}.")
    if not isinstance(learner, OnlineLearner):
        raise InvalidInputError(
            "learn_stream takes an online learner, of pairs or of triplets. Got a "
            f"{type(learner).__name__}."
        )
    if learner.__sklearn_is_fitted__():
        raise InvalidInputError(
            f"learn_stream takes a {type(learner).__name__} that has not learned yet: how much it "
            "has seen says where in the stream it is. Give sklearn.base.clone(learner), or, to go "
            "on from a checkpoint, name that."
        )
    learner = _begun(learner, checkpoint)
    done = learner.n_seen_ if learner.__sklearn_is_fitted__() else 0
    columns = TRIPLETS if isinstance(learner, TripletLearner) else SIDES
    blocks = _blocks(Path(folder), columns, done, block)
    n_blocks = 0
    for n_blocks, (members, y) in enumerate(blocks, start=1):
        learner.partial_fit(members, y)
        if checkpoint is not None and n_blocks % every == 0:
            learner.save(checkpoint)
    if checkpoint is not None and n_blocks % every:
        learner.save(checkpoint)
    return learner


def _begun(learner: O, checkpoint: str | os.PathLike[str] | None) -> O:
    """A copy of the learner, or what the checkpoint holds of it."""
    new = type(learner)(**learner.get_params(deep=False))
    if checkpoint is None or not Path(checkpoint).exists():
        return new
    found: O = made(container.read(checkpoint), type(learner), wanted=type(learner).__name__)
    given, kept = (repr(one) for one in (new, found))
    if given != kept:
        raise InvalidInputError(
            f"The checkpoint {checkpoint} is of a learner with other parameters, {kept}. Got "
            f"{given}; give the same, or another checkpoint."
        )
    return found


def _blocks(
    folder: Path, columns: tuple[str, ...], done: int, size: int
) -> Iterator[tuple[Array, Array | None]]:
    """What comes after the rows that are done: members of shape (n, 2 or 3, d), and signs."""
    read = parquet().ParquetFile
    paths = sorted(folder.glob("*.parquet"))
    if not paths:
        raise InvalidInputError(f"{folder} has no .parquet files. Name the folder of a stream.")
    signed = [] if columns == TRIPLETS else ["y"]
    for path in paths:
        with read(path) as file:
            check_columns(str(path), file.schema_arrow.names, [*columns, *signed])
            n = file.metadata.num_rows
            if done >= n:
                done -= n
                continue
            for batch in file.iter_batches(size, columns=[*columns, *signed]):
                if done >= len(batch):
                    done -= len(batch)
                    continue
                members = np.stack(
                    [vectors(batch.column(name), name, path) for name in columns], axis=1
                )
                y = batch.column("y").to_numpy() if signed else None
                yield members[done:], None if y is None else y[done:]
                done = 0
