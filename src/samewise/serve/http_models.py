"""The bodies of requests; what they do not name is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Names = Annotated[list[Name], Field(max_length=1000)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=8192)]
Text = Annotated[str, StringConstraints(max_length=20_000)]
Scalar = str | bool | int | float | None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CollectionBody(_Strict):
    """The settings of a new collection."""

    encoder: Literal["given", "text", "callable"] = "given"
    text_field: Name = "text"
    guard: Annotated[float, Field(gt=0, lt=1)] | None = 0.05
    margin: Annotated[float, Field(gt=0, le=1e6)] = 0.3
    memory: Annotated[int, Field(ge=0, le=10**6)] = 20_000
    half_life: Annotated[float, Field(ge=1, le=1e12)] | None = None
    index_from: Annotated[int, Field(ge=2, le=10**9)] | None = 200_000


class ItemBody(_Strict):
    """An item to put."""

    id: Name
    vector: Vector | None = None
    payload: dict[str, Any] = {}


class ItemsBody(_Strict):
    """Items to put."""

    items: Annotated[list[ItemBody], Field(min_length=1)]


class IdsBody(_Strict):
    """Items to delete."""

    ids: Annotated[list[Name], Field(min_length=1)]


class SearchBody(_Strict):
    """A search: a vector or a text, and what to find."""

    vector: Vector | None = None
    text: Text | None = None
    k: Annotated[int, Field(ge=1)] = 10
    which: Literal["served", "start", "live"] = "served"
    filters: Annotated[dict[Name, Any], Field(max_length=16)] = {}
    explore: Annotated[int, Field(ge=0)] | None = None
    user: Name | None = None
    min_seq: Annotated[int, Field(ge=0, le=2**53)] = 0


class FeedbackEvent(_Strict):
    """What a user said about an impression, or about a query and what was shown."""

    type: Literal["judged", "click", "ranked", "thumb", "same", "different"]
    event: Name | None = None
    impression: Name | None = None
    query: Vector | None = None
    text: Text | None = None
    shown: Names = []
    liked: Names = []
    disliked: Names = []
    clicked: Names = []
    ranked: Names = []
    item: Name | None = None
    up: bool | None = None
    against: Names = []
    candidate: Name | None = None
    user: Name | None = None
    weight: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 1.0


class FeedbackBody(_Strict):
    """Events, all of which are taken, or none."""

    events: Annotated[list[FeedbackEvent], Field(min_length=1)]


class VersionBody(_Strict):
    """A version to promote; a new copy of the live form by default."""

    version: Annotated[int, Field(ge=0, le=2**53)] | None = None


class StartBody(_Strict):
    """Whether to start again where something was learned."""

    again: bool = False
