"""scikit-learn's callbacks: they hear of each iteration, can stop a run, and are put away."""

from __future__ import annotations

import pytest
from sklearn.base import clone

from samewise import ITML, LMNN, LSML, MCML, MMC, NCA, SCML, SDML, SNN, MultiMetricLMNN, load
from samewise.exceptions import InvalidInputError

pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

LEARNERS = (ITML, LMNN, LSML, MCML, MMC, MultiMetricLMNN, NCA, SCML, SDML, SNN)


class Heard:
    """What a callback was told."""

    def __init__(self, stop=None, fail=None):
        self.tasks, self.stop, self.fail = [], stop, fail
        self.iterations = 0

    def setup(self, estimator, context):
        self.tasks.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.tasks.append(f"end {context.task_name}")
        self.iterations += context.task_name == "iteration"
        if self.iterations == self.fail:
            raise RuntimeError("a callback has failed")
        return self.iterations == self.stop

    def teardown(self, estimator, context):
        self.tasks.append("teardown")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", LEARNERS)
def test_callbacks_hear_of_each_iteration(learner, labeled):
    heard = Heard()
    given = {"max_iter": 4}
    if "random_state" in learner().get_params():
        given["random_state"] = 0
    fitted = learner(**given).set_callbacks(heard).fit(*labeled)
    assert heard.tasks[:2] == ["setup", "begin fit"]
    assert heard.tasks[-2:] == ["end fit", "teardown"]
    assert heard.tasks[2:-2] == ["begin iteration", "end iteration"] * fitted.n_iter_
    plain = learner(**given).fit(*labeled)
    assert plain.metric_ == fitted.metric_ and not hasattr(plain, "_skl_callbacks")


def test_a_callback_can_stop_a_run(labeled):
    learner = LMNN().set_callbacks(Heard(stop=2)).fit(*labeled)
    assert learner.n_iter_ == 2 < LMNN().fit(*labeled).n_iter_


def test_callbacks_are_put_away_where_a_fit_fails(labeled):
    heard = Heard(fail=2)
    learner = LMNN().set_callbacks(heard)
    with pytest.raises(RuntimeError, match="a callback has failed"):
        learner.fit(*labeled)
    assert heard.tasks[-2:] == ["end iteration", "teardown"]
    with pytest.raises(InvalidInputError):
        learner.fit(labeled[0], [0] * len(labeled[0]))
    assert "_callback_fit_ctx" not in vars(learner)


def test_callbacks_are_not_saved(labeled, tmp_path):
    learner = LMNN(max_iter=50).set_callbacks(Heard()).fit(*labeled)
    learner.save(tmp_path / "lmnn.sw")
    assert not hasattr(load(tmp_path / "lmnn.sw"), "_skl_callbacks")
    assert clone(learner)._skl_callbacks
