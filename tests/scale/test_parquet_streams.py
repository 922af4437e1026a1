"""Streams in Parquet files: as one partial_fit, and with the same bits after a kill."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import LDA, OASIS, FactoredAROMA, PassiveAggressive
from samewise.exceptions import InvalidInputError
from samewise.scale import learn_stream

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def written(folder, columns, n_files):
    """The columns in so many files, which have several row groups."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(columns["y"])), n_files)):
        table = {name: list(values[rows]) for name, values in columns.items()}
        parquet.write_table(pa.table(table), folder / f"{number:02}.parquet", row_group_size=37)
    return folder


@pytest.fixture
def stream(tmp_path):
    """(folder, members, y): 500 pairs in 3 files."""
    random = np.random.default_rng(2)
    X = random.normal(size=(500, 2, 4))
    y = random.choice([-1, 1], size=500)
    X[y == 1, 1] = X[y == 1, 0] + 0.3 * random.normal(size=(np.count_nonzero(y == 1), 4))
    folder = written(tmp_path / "stream", {"left": X[:, 0], "right": X[:, 1], "y": y}, 3)
    return folder, X, y


def test_a_stream_of_pairs_is_one_partial_fit(stream):
    folder, X, y = stream
    found = learn_stream(PassiveAggressive(average="uniform"), folder, block=50)
    whole = PassiveAggressive(average="uniform").partial_fit(X, y)
    assert found.n_seen_ == 500 and found.n_updates_ == whole.n_updates_
    np.testing.assert_allclose(found.metric_.matrix, whole.metric_.matrix, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", [OASIS(margin=1.0), FactoredAROMA(margin=1.0, init="identity")])
def test_a_stream_of_triplets_is_one_partial_fit(tmp_path, learner):
    X = np.random.default_rng(3).normal(size=(200, 3, 5))
    names = ("anchor", "positive", "negative")
    columns = {name: X[:, i] for i, name in enumerate(names)}
    folder = written(tmp_path / "stream", {**columns, "y": np.ones(200)}, 2)
    found = learn_stream(learner, folder, block=30)
    assert found.n_seen_ == 200
    assert not learner.__sklearn_is_fitted__()
    whole = learner.partial_fit(X)
    assert found.n_updates_ == whole.n_updates_
    np.testing.assert_allclose(found.metric_.matrix, whole.metric_.matrix, atol=1e-9)


def test_after_a_kill_the_bits_are_the_same(stream, tmp_path, monkeypatch):
    folder, _, _ = stream
    undisturbed = learn_stream(PassiveAggressive(), folder, block=20)
    for blocks in (3, 9, 14):
        seen = 0

        def failing(learner, *given, learned=PassiveAggressive.partial_fit, most=blocks):
            nonlocal seen
            seen += 1
            if seen > most:
                raise KeyboardInterrupt
            return learned(learner, *given)

        checkpoint = tmp_path / f"{blocks}.sw"
        with monkeypatch.context() as patched:
            patched.setattr(PassiveAggressive, "partial_fit", failing)
            with pytest.raises(KeyboardInterrupt):
                learn_stream(PassiveAggressive(), folder, checkpoint=checkpoint, every=2, block=20)
        assert checkpoint.exists()
        again = learn_stream(PassiveAggressive(), folder, checkpoint=checkpoint, block=20)
        for name, learner in (("again", again), ("undisturbed", undisturbed)):
            learner.save(tmp_path / name)
        assert (tmp_path / "again").read_bytes() == (tmp_path / "undisturbed").read_bytes()
        assert checkpoint.read_bytes() == (tmp_path / "again").read_bytes()


def test_files_that_come_later_are_learned_from_the_checkpoint(stream, tmp_path):
    folder, _, _ = stream
    checkpoint = tmp_path / "place.sw"
    last = folder / "02.parquet"
    last.rename(tmp_path / "later")
    first = learn_stream(PassiveAggressive(), folder, checkpoint=checkpoint)
    assert first.n_seen_ < 500
    (tmp_path / "later").rename(last)
    assert learn_stream(PassiveAggressive(), folder, checkpoint=checkpoint).n_seen_ == 500
    # There is nothing left to learn.
    assert learn_stream(PassiveAggressive(), folder, checkpoint=checkpoint).n_seen_ == 500
    with pytest.raises(InvalidInputError, match=r"other parameters, PassiveAggressive\(\)\. Got"):
        learn_stream(PassiveAggressive(C=3.0), folder, checkpoint=checkpoint)


def test_what_is_refused(stream, tmp_path):
    folder, X, y = stream
    with pytest.raises(InvalidInputError, match=r"online learner.* Got a LDA"):
        learn_stream(LDA(), folder)
    with pytest.raises(InvalidInputError, match=r"has not learned yet"):
        learn_stream(PassiveAggressive().partial_fit(X, y), folder)
    with pytest.raises(InvalidInputError, match=r"every must be .* Got 0"):
        learn_stream(PassiveAggressive(), folder, every=0)
    with pytest.raises(InvalidInputError, match=r"columns anchor, .* lacks anchor, pos"):
        learn_stream(OASIS(), folder)
    with pytest.raises(InvalidInputError, match=r"no \.parquet files"):
        learn_stream(OASIS(), tmp_path)
    table = pa.table({"left": [[1.0], [1.0, 2.0]], "right": [[1.0], [2.0]], "y": [1, -1]})
    parquet.write_table(table, folder / "01.parquet")
    with pytest.raises(InvalidInputError, match=r"'left' of .*01.parquet .* lists of 1, 2 numbers"):
        learn_stream(PassiveAggressive(), folder)
