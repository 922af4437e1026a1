"""A worker that is killed in mid-fit changes no bit of the result."""

from __future__ import annotations

import os
import re
import signal
import threading
import time

import numpy as np
import pytest

from samewise import scale
from tests.scale.parts import THOROUGH, in_parts, kill_a_worker

LEARNERS = [
    ("DaskLMNN", {}),
    ("DaskNCA", {"n_components": 3}),
    ("DaskMCML", {}),
    ("DaskMMC", {}),
]
KILLED = LEARNERS if THOROUGH else LEARNERS[::3]
AT = (2, 5) if THOROUGH else (2,)
"""Iterations after which a worker is killed."""


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize(("name", "parameters"), KILLED)
def test_a_killed_worker_changes_nothing(client, letters, letter_pairs, name, parameters, at):
    given = in_parts(4, *(letter_pairs if name == "DaskMMC" else letters))
    undisturbed = getattr(scale, name)(client, **parameters).fit(*given)
    killed = []

    def kill(info):
        if info["iteration"] == at:
            kill_a_worker(client)
            killed.append(at)

    learner = getattr(scale, name)(client, **parameters, callback=kill).fit(*given)
    assert killed
    assert np.array_equal(learner.components_, undisturbed.components_)
    for field, values in undisturbed.history_.items():
        if field != "seconds":
            np.testing.assert_array_equal(learner.history_[field], values)


def mortal(values, readings, at):
    """The values; the worker that reads them for the at-th time dies."""
    with readings.open("a") as file:
        file.write("1")
    if readings.stat().st_size == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return values


@pytest.mark.skipif(not THOROUGH, reason="workers are killed once more in: make scale")
@pytest.mark.parametrize("block", [0, 3])
@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("DaskCovariance", 1),
        ("DaskPCA", 1),
        ("DaskLDA", 1),
        ("DaskRCA", 1),
        # In its second pass.
        ("DaskRCA", 2),
        ("DaskITML", 1),
    ],
)
def test_a_worker_killed_while_it_reads(client, letters, letter_pairs, tmp_path, name, at, block):
    da, dask = pytest.importorskip("dask.array"), pytest.importorskip("dask")
    X, y = in_parts(4, *(letter_pairs if name == "DaskITML" else letters))
    kind = getattr(scale, name)
    parameters = {"random_state": 0} if name == "DaskRCA" else {}
    undisturbed = kind(client, **parameters).fit(X, y)
    readings = tmp_path / "readings"
    blocks = [X.blocks[part] for part in range(4)]
    read = dask.delayed(mortal, pure=False)(blocks[block].compute(), readings, at)
    blocks[block] = da.from_delayed(read, blocks[block].shape, dtype=X.dtype)
    client.wait_for_workers(2)
    learner = kind(client, **parameters).fit(da.concatenate(blocks), y)
    # It was read again.
    assert readings.stat().st_size > at
    assert np.array_equal(learner.metric_.matrix, undisturbed.metric_.matrix)


def test_ctrl_c_leaves_what_was_learned(client, letters):
    def interrupt(info):
        if info["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    learner = scale.DaskLMNN(client, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(*in_parts(2, *letters))
    assert 2 <= learner.n_iter_ <= 3
    assert learner.components_.shape == (16, 16)


def slowly(block):
    time.sleep(1.0)
    return block


def test_ctrl_c_in_one_pass_leaves_learner_and_cluster_as_they_were(client, letters):
    X, _ = in_parts(8, *letters)
    learner = scale.DaskPCA(client, n_components=2).fit(X)
    before = learner.components_
    ended = threading.Event()

    def interrupt():
        # Again where Python was amid a callback, whose errors it only prints.
        while not ended.wait(0.5):
            os.kill(os.getpid(), signal.SIGINT)

    # Processes in which tests run may ignore the signal.
    before_that = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            try:
                learner.fit(X.map_blocks(slowly, meta=np.empty((0, 16))))
            finally:
                ended.set()
    finally:
        signal.signal(signal.SIGINT, before_that)
    assert learner.components_ is before
    # What was left is not worked on, and the cluster takes new work.
    assert np.array_equal(learner.fit(X).components_, before)


def limits():
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info()}


def test_workers_are_warm(client, letters):
    """Also one that takes the place of another."""
    scale.DaskPCA(client).fit(in_parts(2, *letters)[0])
    kill_a_worker(client)
    assert all(client.run(lambda dask_worker: "samewise" in dask_worker.plugins).values())
    assert all(found <= {1} for found in client.run(limits).values())


def test_progress_is_said(client, letters, capsys):
    X, _ = in_parts(8, *letters)
    slow = X.map_blocks(slowly, meta=np.empty((0, 16)))
    with scale.progress():
        scale.DaskPCA(client).fit(slow)
    assert re.search(r"\d of 8 parts, \d+ s", capsys.readouterr().err)
    scale.DaskPCA(client).fit(slow)
    assert "parts" not in capsys.readouterr().err
