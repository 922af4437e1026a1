"""The live adapter's simulation, in small."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import _live_challengers, _live_guard, _live_warm, live
from experiments._live_simulation import (
    Corpus,
    Users,
    measures,
    random_streams,
    stream,
    write_log,
)
from experiments.banking77 import banking
from samewise.exceptions import DatasetNotFoundError


@pytest.fixture(scope="module")
def few():
    try:
        (A, a), (B, b) = banking(4)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    return Corpus(A, a, B, b)


def test_measures_are_those_of_a_plain_loop(few):
    E = few.tests[:7]
    part = Corpus(few.items, few.item_labels, E, few.test_labels[:7])
    found = []
    for q, label in zip(E, part.test_labels, strict=True):
        hits = few.item_labels[np.argsort(-(few.items @ q), kind="stable")] == label
        ranks = np.flatnonzero(hits)
        precision = [(i + 1) / (rank + 1) for i, rank in enumerate(ranks)]
        found.append((hits[0], hits[:10].mean(), np.mean(precision)))
    np.testing.assert_allclose(measures(E, None, part), 100 * np.mean(found, axis=0))


def test_users_answer_as_they_are_said_to():
    right = np.array([True, False, True])
    random = np.random.RandomState(0)
    assert Users().answer(right, False, 0, random).tolist() == [1, -1, 1]
    assert Users(noise=1.0).answer(right, False, 0, random).tolist() == [-1, 1, -1]
    later = Users("inverted", since=5)
    assert later.answer(right, False, 4, random).tolist() == [1, -1, 1]
    assert later.answer(right, False, 5, random).tolist() == [-1, 1, -1]
    drift = Users("drift")
    assert drift.answer(right, False, 0, random).tolist() == [1, -1, 1]
    assert drift.answer(right, True, 0, random).tolist() == [-1, 1, -1]


def test_a_stream_is_the_same_again(few):
    first = stream(few, Users(noise=0.1), 60, 0, guard=0.05, at=(60,))[1]
    again = stream(few, Users(noise=0.1), 60, 0, guard=0.05, at=(60,))[1]
    np.testing.assert_array_equal(first.live[60], again.live[60])
    np.testing.assert_array_equal(first.served[60], measures(few.tests, None, few))


def test_coins_and_the_choice(few):
    assert random_streams(few, 3, 20)["promoted"] == 0
    chosen = live.on_held_out(few, 0.3, 64, 0.0, 50)
    assert chosen["coordinates"] == 64 and abs(chosen["P@1 gain"]) < 20


def test_a_log_of_the_simulation_makes_the_same_adapter(few, tmp_path):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from samewise.cli.app import app

    write_log(tmp_path / "events.jsonl", few, Users(noise=0.1), 150, 0).save(tmp_path / "wanted")
    np.save(tmp_path / "items.npy", few.items)
    items = [f"--{name}={tmp_path / 'items.npy'}" for name in ("items", "queries")]
    given = [str(tmp_path / "events.jsonl"), *items, f"--out={tmp_path / 'found'}", "--no-log"]
    result = CliRunner().invoke(app, ["adapt", *given])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "found").read_bytes() == (tmp_path / "wanted").read_bytes()


def test_a_warm_start_is_compared(few):
    queries, relevant = _live_warm.pairs_of(few.item_labels, 60, 0)
    assert (few.item_labels[queries] == few.item_labels[relevant]).all()
    assert (queries != relevant).all() and len(set(queries.tolist())) == 60
    live_form, served = _live_warm.warm(few, 60, 0)
    assert served["P@1"] >= measures(few.tests, None, few)[0] - 1
    assert live_form["pairs"] == 60 and live_form["seconds"] > 0


def test_adapters_of_pytorch_learn(few):
    if reason := _live_warm._live_torch.reason_to_skip():
        pytest.skip(reason)
    start = measures(few.tests, None, few)
    rows = _live_warm.torch_rows(few, len(few.items), 0, (1e-3, 2))
    assert len(rows) == 4 and rows[1]["mAP"] > start[2]


def test_clicks_and_thumbs_are_said(few):
    for said in ("clicks", "thumbs"):
        adapter, course = stream(few, Users(said=said), 60, 0, guard=0.05, watch=True)
        assert 30 < adapter.n_events_ <= 60 and not course.changed
    # Clicks in interleaved lists are bets.
    assert stream(few, Users(said="clicks"), 60, 0, guard=0.05)[0]._fitted.guard.bets[0, 1] > 0


def test_challengers_learn_from_the_same_lists(few):
    entries = []
    stream(few, Users(noise=0.2), 60, 0, guard=0.05, record=entries.append)
    log = _live_challengers.Log.of(entries)
    learn = _live_challengers.challengers(few.items.shape[1])["OASIS"]
    M, served, guard = _live_challengers.guarded(few, log, learn)
    mixed = (np.abs(log.y.sum(axis=1)) < 10).sum()
    assert guard.bets[1, 1] == mixed > 20
    assert np.abs(M - np.eye(len(M))).max() > 1e-3
    assert all((map_ == np.eye(len(M))).all() for map_ in served.values())
    start = measures(few.tests, None, few)
    for make in (_live_challengers.rocchio, _live_challengers.expanded):
        assert measures(make(few, log), None, few)[2] > start[2]
    assert _live_challengers.lda(few)[2] > start[2]


def test_the_guard_is_counted(few):
    row = _live_guard.streams(few, Users("inverted", since=20), 3, 40)
    assert (row["streams"], row["lists"], row["promoted"], row["worse"]) == (3, 40, 0, 0)
