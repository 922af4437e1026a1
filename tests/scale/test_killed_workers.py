"""A worker that is killed in mid-fit changes no bit of the result."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from samewise import scale
from tests.scale.parts import THOROUGH, in_parts

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
            client.wait_for_workers(2)
            # One that holds something.
            holding = max(client.has_what().items(), key=lambda worker: len(worker[1]))[0]
            pid = client.run(os.getpid)[holding]
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    learner = getattr(scale, name)(client, **parameters, callback=kill).fit(*given)
    assert killed
    assert np.array_equal(learner.components_, undisturbed.components_)
    for field, values in undisturbed.history_.items():
        if field != "seconds":
            np.testing.assert_array_equal(learner.history_[field], values)


def test_ctrl_c_leaves_what_was_learned(client, letters):
    def interrupt(info):
        if info["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    learner = scale.DaskLMNN(client, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(*in_parts(2, *letters))
    assert 2 <= learner.n_iter_ <= 3
    assert learner.components_.shape == (16, 16)
