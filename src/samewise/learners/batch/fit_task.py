"""scikit-learn's callbacks, where its version has them (1.9)."""

from __future__ import annotations

from typing import Any


def callback_support() -> Any:
    """scikit-learn's mixin, imported where it is asked for: that takes a fifth of a second."""
    try:
        from sklearn.callback import CallbackSupportMixin
    except ImportError as error:
        raise ImportError(
            "set_callbacks needs scikit-learn 1.9 or later. Upgrade it, or give callback, a "
            "function that is called after each iteration."
        ) from error
    return CallbackSupportMixin


class FitTask:
    """A fit as callbacks see it: one task, with a subtask for each iteration.

    How many iterations there will be is not known, and `fitted_estimator` is None.

    Parameters
    ----------
    learner : estimator
        It was given callbacks.
    """

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        self._task = callback_support()._init_callback_context(learner, max_subtasks=None)

    def __enter__(self) -> FitTask:
        self._task.call_on_fit_task_begin(estimator=self._learner)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is None:
            self._task.call_on_fit_task_end(estimator=self._learner)

    def iteration(self) -> bool:
        """An iteration has ended; whether a callback wants to stop."""
        step = self._task.subcontext(task_name="iteration")
        step.call_on_fit_task_begin(estimator=self._learner)
        return bool(step.call_on_fit_task_end(estimator=self._learner))
