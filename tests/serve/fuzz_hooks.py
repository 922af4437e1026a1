"""What the fuzzer cannot guess: names of collections, impressions and items that are there."""

from __future__ import annotations

import os
import random

import schemathesis

COLLECTIONS = ("c", "t")
IMPRESSIONS = os.environ.get("SAMEWISE_IMPRESSIONS", "none").split()
ITEMS = [f"i{i}" for i in range(50)]
_LISTS = ("shown", "liked", "disliked", "clicked", "ranked", "against", "ids")


def _chosen(given):
    """Random numbers that depend on what was generated; None for one in four."""
    random_ = random.Random(repr(given))
    return random_ if random_.random() < 0.75 else None


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """A collection that is there."""
    random_ = _chosen(path_parameters)
    if random_ is not None and "collection" in (path_parameters or {}):
        path_parameters["collection"] = random_.choice(COLLECTIONS)
        if "id" in path_parameters:
            path_parameters["id"] = random_.choice(ITEMS)
    return path_parameters


@schemathesis.hook
def map_query(context, query):
    """An impression that is there; a stream that ends."""
    random_ = _chosen(query)
    if random_ is not None and "impression" in (query or {}):
        query["impression"], query["item"] = random_.choice(IMPRESSIONS), random_.choice(ITEMS)
    if "/events" in context.operation.path and context.operation.method.upper() == "GET":
        query = {**(query or {}), "follow": "false"}
    return query


@schemathesis.hook
def map_body(context, body):
    """Impressions, items and vectors that fit."""
    random_ = _chosen(body)
    if random_ is None or not isinstance(body, dict):
        return body
    for part in (body, *_parts(body, "events"), *_parts(body, "items")):
        for name, value in part.items():
            if name == "impression" and _is_name(value):
                part[name] = random_.choice(IMPRESSIONS)
            elif name == "item" and _is_name(value):
                part[name] = random_.choice(ITEMS)
            elif name in _LISTS and isinstance(value, list):
                part[name] = [random_.choice(ITEMS) if _is_name(v) else v for v in value]
            elif name in ("vector", "query") and isinstance(value, list):
                part[name] = (4 * value)[:4]
    return body


def _is_name(value):
    # What does not fit stays as it is.
    return isinstance(value, str) and 1 <= len(value) <= 256


def _parts(body, name):
    listed = body.get(name)
    return [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []
