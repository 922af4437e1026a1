"""The bodies of requests; what they do not name is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Names = Annotated[list[Name], Field(max_length=1000)]
# Strictly: true and "1" are no numbers.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=8192)]
Text = Annotated[str, StringConstraints(max_length=20_000)]
Scalar = str | bool | int | float | None


class StrictBody(BaseModel):
    """What is not named is refused."""

    model_config = ConfigDict(extra="forbid")


class CollectionBody(StrictBody):
    """The settings of a new collection."""

    encoder: Literal["given", "text", "callable"] = "given"
    text_field: Name = "text"
    guard: Annotated[Number, Field(gt=0, lt=1)] | None = 0.05
    margin: Annotated[Number, Field(gt=0, le=1e6)] = 0.3
    memory: Annotated[Whole, Field(ge=0, le=10**6)] = 20_000
    half_life: Annotated[Number, Field(ge=1, le=1e12)] | None = None
    index_from: Annotated[Whole, Field(ge=2, le=10**9)] | None = 200_000
    personal: Annotated[Whole, Field(ge=0, le=1000)] = 0


class ItemBody(StrictBody):
    """An item to put."""

    id: Name
    vector: Vector | None = None
    payload: dict[str, Any] = {}


class ItemsBody(StrictBody):
    """Items to put."""

    items: Annotated[list[ItemBody], Field(min_length=1)]


class IdsBody(StrictBody):
    """Items to delete."""

    ids: Annotated[list[Name], Field(min_length=1)]


class SearchBody(StrictBody):
    """A search: a vector or a text, and what to find."""

    vector: Vector | None = None
    text: Text | None = None
    k: Annotated[Whole, Field(ge=1)] = 10
    which: Literal["served", "start", "live"] = "served"
    filters: Annotated[dict[Name, Any], Field(max_length=16)] = {}
    explore: Annotated[Whole, Field(ge=0)] | None = None
    user: Name | None = None
    min_seq: Annotated[Whole, Field(ge=0, le=2**53)] = 0


class FeedbackEvent(StrictBody):
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
    up: Annotated[bool, Field(strict=True)] | None = None
    against: Names = []
    candidate: Name | None = None
    user: Name | None = None
    weight: Annotated[Number, Field(ge=0, le=1e6)] = 1.0


class FeedbackBody(StrictBody):
    """Events, all of which are taken, or none."""

    events: Annotated[list[FeedbackEvent], Field(min_length=1)]


class VersionBody(StrictBody):
    """A version to promote; a new copy of the live form by default."""

    version: Annotated[Whole, Field(ge=0, le=2**53)] | None = None


class StartBody(StrictBody):
    """Whether to start again where something was learned."""

    again: Annotated[bool, Field(strict=True)] = False
