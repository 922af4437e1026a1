"""Documents against topics: filters that decide at once and remember only what matters."""

from __future__ import annotations

from samewise.filtering.base import Decision, Filter, Judge
from samewise.filtering.baselines import NearestFilter, PAUMFilter, PerceptronFilter
from samewise.filtering.batch import BatchTopicFilter
from samewise.filtering.documents import Document, Documents, Judgments
from samewise.filtering.files import load
from samewise.filtering.pola import PolaFilter
from samewise.filtering.run import Run
from samewise.filtering.topic_filter import TopicFilter
from samewise.filtering.topics import Topic, read_topics
from samewise.filtering.vectors import TextVectors

__all__ = [
    "BatchTopicFilter",
    "Decision",
    "Document",
    "Documents",
    "Filter",
    "Judge",
    "Judgments",
    "NearestFilter",
    "PAUMFilter",
    "PerceptronFilter",
    "PolaFilter",
    "Run",
    "TextVectors",
    "Topic",
    "TopicFilter",
    "load",
    "read_topics",
]
