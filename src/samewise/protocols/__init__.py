"""How learners are chosen, tuned and judged, and what they learned."""

from samewise.forms.inspection import Inspection, inspect_form
from samewise.protocols.choice import Choice, choose_learner, tune_learner
from samewise.protocols.compiling_ahead import warm_up
from samewise.protocols.fitting import fit_model
from samewise.protocols.learner_comparison import Compared, Comparison, compare, compare_each
from samewise.protocols.measuring import (
    Measured,
    calibrate_threshold,
    gain,
    knn_correct,
    measure,
)
from samewise.protocols.model_evaluation import ModelEvaluation, evaluate, rows_to_judge_by
from samewise.protocols.reduction import Reduction, reduction_for
from samewise.protocols.scaling import mean_and_scale, standardization
from samewise.protocols.trials import Trial, make_learner
from samewise.protocols.tune import TunedC, neighbor_accuracies, tune_C
from samewise.supervision.holding_out import hold_out

__all__ = [
    "Choice",
    "Compared",
    "Comparison",
    "Inspection",
    "Measured",
    "ModelEvaluation",
    "Reduction",
    "Trial",
    "TunedC",
    "calibrate_threshold",
    "choose_learner",
    "compare",
    "compare_each",
    "evaluate",
    "fit_model",
    "gain",
    "hold_out",
    "inspect_form",
    "knn_correct",
    "make_learner",
    "mean_and_scale",
    "measure",
    "neighbor_accuracies",
    "reduction_for",
    "rows_to_judge_by",
    "standardization",
    "tune_C",
    "tune_learner",
    "warm_up",
]
