"""Documents against topics: filters that decide at once and remember only what matters."""

from __future__ import annotations

from samewise.filtering.document_filter import Decision, Filter, Judge, load
from samewise.filtering.documents import Document, Documents, Judgments
from samewise.filtering.filter_report import FilterReport
from samewise.filtering.filter_run import FilterRun, filter_stream
from samewise.filtering.pola_filter import PolaFilter
from samewise.filtering.supervised_filters import NearestFilter, PAUMFilter, PerceptronFilter
from samewise.filtering.text_vectors import TextVectors
from samewise.filtering.topic_filters import BatchTopicFilter, TopicFilter
from samewise.filtering.topics import Topic, read_topics

__all__ = [
    "BatchTopicFilter",
    "Decision",
    "Document",
    "Documents",
    "Filter",
    "FilterReport",
    "FilterRun",
    "Judge",
    "Judgments",
    "NearestFilter",
    "PAUMFilter",
    "PerceptronFilter",
    "PolaFilter",
    "TextVectors",
    "Topic",
    "TopicFilter",
    "filter_stream",
    "load",
    "read_topics",
]
