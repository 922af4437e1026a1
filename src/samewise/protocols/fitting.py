"""From labeled rows to a model: choose, scale, reduce, learn, calibrate and measure."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.kernels.compile_clock import CLOCK
from samewise.learners import Cosine
from samewise.model import Model, row_marks, standardized
from samewise.protocols.choice import Choice, choose_learner, tune_learner
from samewise.protocols.keeping import Kept, better_of
from samewise.protocols.measuring import calibrate_threshold, knn_correct
from samewise.protocols.reduction import reduction_for
from samewise.protocols.row_splits import held_rows
from samewise.protocols.scaling import chosen_scaling
from samewise.protocols.trials import make_learner
from samewise.scores import s_test
from samewise.supervision.supervision_checks import labeled_rows

Watch = Callable[[str], object]
"""Called with a line of text about what is done."""


def fit_model(
    X: Any,
    y: ArrayLike,
    learner: str = "auto",
    *,
    params: Mapping[str, Any] | None = None,
    tune: bool = False,
    scale: str = "auto",
    held_out: float | ArrayLike = 0.2,
    keep: str = "better",
    random_state: Any = 0,
    watch: Watch | None = None,
) -> Model:
    """Learn a metric from labeled rows, and measure what it gains on rows that are held out.

    Columns are scaled if they need it, a learner is chosen if none is named, the metric is
    learned, the threshold for "the same" is calibrated, and 3-NN under the metric is compared
    with 3-NN under the Euclidean distance and the cosine. Learners that are slow in many features
    learn in the leading principal directions.

    Where the plain distance or cosine errs less than the learner in validation, it takes the
    learner's place. Validation rows are a part of the rows to learn from: the rows held out choose
    nothing, so that what is measured on them is unbiased.

    Parameters
    ----------
    X : array, CSR matrix or DataFrame of shape (n, d)
        Rows to learn from and to measure on. The columns of a DataFrame name the features.
    y : array of shape (n,)
        Their labels, of two classes at least.
    learner : str, default="auto"
        A name that `samewise.protocols.make_learner` knows; "auto" chooses one by validation.
    params : dict, default=None
        Parameters of the learner; only together with its name.
    tune : bool, default=False
        Choose other parameters of the learner from a small grid by validation.
    scale : {"auto", "standard", "none"}, default="auto"
        "standard" standardizes the columns. "auto" does so for dense columns whose spreads differ
        more than tenfold, unless 3-NN is clearly better without.
    held_out : float or array of booleans of shape (n,), default=0.2
        The part of the rows that is not learned from, or which rows these are. With 0, nothing is
        measured.
    keep : {"better", "learned"}, default="better"
        What to keep where nothing was gained. "better": the Euclidean distance or the cosine, if it
        errs less than the learner on a quarter of the rows to learn from (of at most 3 000), in
        which the learner learns from the others once more; a warning says if nothing was gained.
        "learned": what was learned, without looking. With learner="auto" the choice is between all
        of them anyway.
    random_state : int, RandomState instance or None, default=0
        Seed for reproducible splits, pairs and learners.
    watch : callable, default=None
        Called with a line of text about what is done.

    Returns
    -------
    Model
        Its `measured` has the 3-NN errors on the rows that were held out, and the s-tests. Its
        `training` says how it went: "asked" (the learner that learned), "reason" (of the choice, in
        words), "tried", "rows", "held_out", "classes", "principal_directions" (None if all features
        were used), "seconds" and "interrupted". Its `learner` is what was kept, and `kept` says
        why. After Ctrl-C while learning or measuring, the model has what was learned up to there.

    See Also
    --------
    evaluate : Measures a model on other rows.
    compare : Several learners on the same rows.
    write_report : One HTML file about a model.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from samewise import fit_model
    >>> X, y = load_wine(return_X_y=True)
    >>> model = fit_model(X, y, "lda")
    >>> model.training["rows"], model.training["held_out"], model.mean is not None
    (142, 36, True)
    >>> sorted(model.measured["errors"])
    ['cosine', 'euclidean', 'lda']
    >>> model.transform(X).shape
    (178, 2)
    """
    given = dict(params or {})
    if learner == "auto" and given:
        raise InvalidInputError("params belong to one learner; name it with learner=.")
    if learner != "auto":
        make_learner(learner, given)
    if keep not in ("better", "learned"):
        raise InvalidInputError(f"keep must be 'better' or 'learned'. Got {keep!r}.")
    names = getattr(X, "columns", None)
    rows, y = labeled_rows(X, y)
    if len(np.unique(y)) < 2:
        raise InvalidInputError("y must have labels of at least two classes. Got one class.")
    held = held_rows(y, held_out, random_state)
    scaling = chosen_scaling(rows[~held], y[~held], scale)
    scaled = rows if scaling is None else standardized(rows, *scaling)
    say = watch or (lambda text: None)
    job = _Job(scaled[~held], y[~held], scaled[held], y[held], random_state, say)
    choice = job.choose(learner, given, tune)
    form, training = job.learn(choice)
    kept, measured = Kept(choice.name, choice.params, form), {}
    try:
        if keep == "better" and learner != "auto" and not training["interrupted"]:
            say(f"looking whether {choice.name} helps")
            kept = better_of(choice, form, job.X, job.y, random_state)
        if held.any():
            measured = job.measure(kept.name, {choice.name: form})
    except KeyboardInterrupt:
        # What was learned is kept, measured or not.
        training["interrupted"] = True
    kept.warn()
    mean, deviation = scaling or (None, None)
    return Model(
        kept.form,
        None if names is None else tuple(map(str, names)),
        mean=mean,
        scale=deviation,
        learner=kept.name,
        params=kept.params,
        kept=kept.reason,
        measured=measured,
        threshold=calibrate_threshold(kept.form, job.X, job.y, random_state=random_state),
        versions=_versions(),
        seen=np.unique(row_marks(rows[~held])),
        training=training | {"classes": len(np.unique(y))},
    )


@dataclass(frozen=True)
class _Job:
    """Rows to learn from and rows held out, scaled."""

    X: Matrix
    y: NDArray[Any]
    X_held: Matrix
    y_held: NDArray[Any]
    random_state: Any
    say: Watch

    def choose(self, name: str, params: dict[str, Any], tune: bool) -> Choice:
        table: list[Any] = []
        reason = ""
        rows: dict[str, Any] = {"X": self.X, "y": self.y, "random_state": self.random_state}

        def watch(trial: str, done: int, total: int) -> None:
            self.say(f"choosing a learner: {trial}, {done} of {total} tried")

        def watch_tuning(trial: str, done: int, total: int) -> None:
            self.say(f"tuning {trial}: {done} of {total} settings tried")

        if name == "auto":
            choice = choose_learner(**rows, watch=watch)
            name, reason, table = choice.name, choice.reason, choice.table
        if tune:
            tuned = tune_learner(name, **rows, params=params, watch=watch_tuning)
            params, table = tuned.params, [*table, *tuned.table]
            reason = f"{reason} {tuned.reason}".strip()
        learner = make_learner(name, params, self.random_state)
        return Choice(name, params, learner, reason, table)

    def learn(self, choice: Choice) -> tuple[Form, dict[str, Any]]:
        """The form, and how learning went."""
        learner, name = choice.learner, choice.name
        self.say(f"learning: {name} from {len(self.y):,} rows")
        if "callback" in learner.get_params():

            def watch(info: dict[str, Any]) -> None:
                loss = info.get("loss")
                shown = "" if loss is None else f", loss {loss:.5g}"
                self.say(f"learning: {name}, iteration {info.get('iteration', '')}{shown}")

            learner.set_params(callback=watch)
        start = CLOCK.now()
        reduction = reduction_for(learner, self.X)
        interrupted = False
        try:
            learner.fit(reduction.rows(self.X), self.y)
        except KeyboardInterrupt:
            if not hasattr(learner, "metric_"):
                raise
            # What was learned up to there is sound, and is kept.
            interrupted = True
        return reduction.lift(learner.metric_), {
            "asked": name,
            "reason": choice.reason,
            "rows": len(self.y),
            "held_out": len(self.y_held),
            "principal_directions": reduction.n_directions,
            "seconds": CLOCK.now() - start,
            "interrupted": interrupted,
            "tried": [trial.as_dict() for trial in choice.table],
        }

    def measure(self, name: str, learned: dict[str, Form]) -> dict[str, Any]:
        """3-NN errors on the rows held out, and the s-tests of the one that is kept."""
        forms = {"euclidean": None, "cosine": Cosine().fit(self.X).metric_, **learned}
        correct = {}
        for which, metric in forms.items():
            self.say(f"measuring {which} on {len(self.y_held):,} rows")
            correct[which] = knn_correct(metric, self.X, self.y, self.X_held, self.y_held)
        tests = {b: s_test(correct[name], right) for b, right in correct.items() if b != name}
        return {
            "rows": len(self.y_held),
            "errors": {which: float(np.mean(~right)) for which, right in correct.items()},
            "against": {b: {"mark": t.mark, "p_value": t.p_value} for b, t in tests.items()},
        }


def _versions() -> dict[str, str]:
    names = ("samewise", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{n: metadata.version(n) for n in names}}
