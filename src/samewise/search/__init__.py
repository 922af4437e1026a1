"""Exact nearest neighbors under any form."""

from __future__ import annotations

from samewise.search.class_index import ClassIndex
from samewise.search.class_margins import margins
from samewise.search.faiss_index import to_faiss
from samewise.search.graph_indexes import MappedIndex, to_hnswlib, to_usearch
from samewise.search.index import Index
from samewise.search.neighbor_graph import to_onnx

__all__ = [
    "ClassIndex",
    "Index",
    "MappedIndex",
    "margins",
    "to_faiss",
    "to_hnswlib",
    "to_onnx",
    "to_usearch",
]
