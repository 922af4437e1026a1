"""The file of a filter: parameters, weights of terms, and what was kept from the stream."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

import numpy as np

from samewise.exceptions import InvalidInputError
from samewise.files import container
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, restored, stored
from samewise.filtering.baseline_filters import NearestFilter, PAUMFilter, PerceptronFilter
from samewise.filtering.batch_topic_filter import BatchTopicFilter
from samewise.filtering.document_filter import Filter
from samewise.filtering.pola_filter import PolaFilter
from samewise.filtering.text_vectors import GivenVectors, TextVectors
from samewise.filtering.topic_filter import TopicFilter
from samewise.forms import Form
from samewise.learners.online.online_learner import OnlineLearner

__all__ = ["filter_of", "load", "save_filter"]

FILTERS: dict[str, type[Filter]] = {
    cls.__name__: cls
    for cls in (
        BatchTopicFilter,
        NearestFilter,
        PAUMFilter,
        PerceptronFilter,
        PolaFilter,
        TopicFilter,
    )
}


def save_filter(filter: Filter, path: str | os.PathLike[str]) -> None:
    """Write a filter to a file; see `Filter.save`."""
    name = type(filter).__name__
    if FILTERS.get(name) is not type(filter):
        raise InvalidInputError(
            f"{name} is a class of your own, which a file cannot name; save one of "
            f"{', '.join(FILTERS)}."
        )
    filter._check_parameters()
    state = State().add("parameters", _parameters(filter))
    vectors = filter._vectors
    kind = "text" if isinstance(vectors, TextVectors) else "given"
    kind = "scikit-learn" if getattr(vectors, "vectorizer", None) is not None else kind
    state.values["vectors_kind"] = kind
    if kind == "text":
        state.add("vectors", vectors.state())
    state.add("shared", filter._shared_state()).add("own", filter._state())
    container.write(path, name, state.arrays, state.values, owner=name)


def load(path: str | os.PathLike[str], vectorizer: Any = None) -> Any:
    """Read a filter that `save` wrote; it goes on exactly where the saved one stopped.

    Parameters
    ----------
    path : str or path
    vectorizer : fitted vectorizer of scikit-learn, optional
        The one the filter was used with, if it was; it is not in the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from samewise.filtering import TopicFilter, load
    >>> topics = TopicFilter().fit({"cocoa": "cocoa beans"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     topics.save(pathlib.Path(folder) / "filter")
    ...     load(pathlib.Path(folder) / "filter").topics_
    ('cocoa',)
    """
    return filter_of(container.read(path), vectorizer)


def filter_of(content: container.Content, vectorizer: Any = None) -> Filter:
    """The filter that a file holds."""
    cls = FILTERS.get(content.kind)
    if cls is None:
        content.refuse("holds no filter; samewise.load reads forms and learners")
    kind = content.params.get("vectors_kind")
    if (kind == "scikit-learn") != (vectorizer is not None):
        raise InvalidInputError(
            f"{content.path} was saved {'with' if vectorizer is None else 'without'} a vectorizer "
            f"of scikit-learn; call load {'with that one' if vectorizer is None else 'without one'}"
            " as vectorizer."
        )
    with content.making(cls.__name__):
        saved = Saved(content.arrays, content.params)
        saved.choice("vectors_kind", ("text", "given", "scikit-learn"))
        filter = cls(**_restored_parameters(cls, saved.part("parameters"), vectorizer))
        filter._check_parameters()
        vectors: Any = TextVectors.restore(saved.part("vectors")) if kind == "text" else None
        shared = saved.part("shared")
        filter._restore_shared(shared, vectors or GivenVectors(vectorizer))
        vectors = filter._vectors
        width = filter._topics.n_features
        if isinstance(vectors, GivenVectors):
            vectors.n_features = width
        saved.check(vectors.n_features == width, "topics must have the features of the vectorizer")
        filter._check_fit(filter._topics)
        filter._restore(saved.part("own"))
        saved.finish()
        return filter


def _parameters(filter: Filter) -> State:
    """The parameters; a metric is packed, and the vectorizer stands elsewhere."""
    state = State()
    for name, value in filter.parameters.items():
        if name == "vectorizer":
            continue
        if name == "metric" and isinstance(value, Form | OnlineLearner):
            if isinstance(value, OnlineLearner) and not value.__sklearn_is_fitted__():
                state.values["unfitted"] = [type(value).__name__, value.get_params()]
                continue
            state.add(name, stored(value))
            continue
        state.values[name] = value.item() if isinstance(value, np.generic) else value
    return state


def _restored_parameters(cls: type[Filter], saved: Saved, vectorizer: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for name in (each.name for each in fields(cls)):
        if name == "vectorizer":
            parameters[name] = vectorizer
            continue
        if name == "metric" and saved.is_a(dict, name):
            parameters[name] = restored(saved.part(name), Form, OnlineLearner)
        elif name == "metric" and saved.has("unfitted"):
            kind, given = saved.value("unfitted")
            learner: Any = Storable._kinds[kind]
            parameters[name] = learner(**given)
        else:
            parameters[name] = saved.value(name)
    return parameters
