"""A live adapter for frozen embeddings, and the feedback it learns from."""

from samewise.adapt.feedback_comparison import (
    ComparedMeasure,
    FeedbackComparison,
    evaluate_feedback,
)
from samewise.adapt.feedback_events import (
    Click,
    Different,
    Judged,
    RankedList,
    Same,
    Thumb,
)
from samewise.adapt.headroom import Headroom
from samewise.adapt.live_adapter import LiveAdapter
from samewise.adapt.query_form import QueryForm
from samewise.adapt.query_map import QueryMap
from samewise.adapt.shown_lists import Slots
from samewise.adapt.warm_start import WarmStart

__all__ = [
    "Click",
    "ComparedMeasure",
    "Different",
    "FeedbackComparison",
    "Headroom",
    "Judged",
    "LiveAdapter",
    "QueryForm",
    "QueryMap",
    "RankedList",
    "Same",
    "Slots",
    "Thumb",
    "WarmStart",
    "evaluate_feedback",
]
