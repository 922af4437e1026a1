"""How learners are chosen, tuned and judged, and what they learned."""

from samewise.protocols.choice import (
    Choice,
    Trial,
    choose_learner,
    make_learner,
    tune_learner,
)
from samewise.protocols.comparison import Compared, compare
from samewise.protocols.evaluation import (
    Gain,
    Measured,
    calibrate_threshold,
    evaluate,
    gain,
    knn_correct,
)
from samewise.protocols.inspection import Inspection, inspect_form
from samewise.protocols.parts import hold_out
from samewise.protocols.reduction import Reduction, reduction_for
from samewise.protocols.scaling import mean_and_scale, standardization
from samewise.protocols.tune import TunedC, neighbor_accuracies, tune_C

__all__ = [
    "Choice",
    "Compared",
    "Gain",
    "Inspection",
    "Measured",
    "Reduction",
    "Trial",
    "TunedC",
    "calibrate_threshold",
    "choose_learner",
    "compare",
    "evaluate",
    "gain",
    "hold_out",
    "inspect_form",
    "knn_correct",
    "make_learner",
    "mean_and_scale",
    "neighbor_accuracies",
    "reduction_for",
    "standardization",
    "tune_C",
    "tune_learner",
]
