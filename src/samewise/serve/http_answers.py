"""What the routes answer, for the OpenAPI text: each status with its body."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, RootModel


class _Answer(BaseModel):
    # Fields may be added in a later version.
    model_config = ConfigDict(extra="allow")


class Place(_Answer):
    """A field that does not fit."""

    where: list[str]
    what: str


class Refusal(_Answer):
    """Why a request was refused."""

    error: str
    places: list[Place] = []


class MadeAnswer(_Answer):
    """Whether a collection is new."""

    new: bool


class DeletedAnswer(_Answer):
    """Whether there was such a collection."""

    deleted: bool


class FactsAnswer(_Answer):
    """Numbers about a collection."""

    items: int
    rows: int
    width: int | None
    seq: int
    committed: int
    events: int
    started: bool
    failed: str | None
    time: float


class Collections(RootModel[dict[str, FactsAnswer]]):
    """Numbers about each collection."""


class DescriptionAnswer(FactsAnswer):
    """Settings of a collection, and numbers about it."""

    settings: dict[str, Any]


class CountAnswer(_Answer):
    """How many items or events it was about, and the number of the commit."""

    count: int
    seq: int


class SeqAnswer(_Answer):
    """The number of the commit."""

    seq: int


class ItemAnswer(_Answer):
    """An item."""

    id: str
    payload: dict[str, Any]


class Result(_Answer):
    """An item that was found."""

    position: int
    id: str
    score: float
    why: str
    payload: dict[str, Any]


class SearchAnswer(_Answer):
    """What was found, and the impression that feedback names."""

    impression: str
    seq: int
    which: str
    results: list[Result]


class FeedbackAnswer(_Answer):
    """The newest number, how many events were new, and the number of each."""

    seq: int
    new: int
    events: list[int]


class KeptVersion(_Answer):
    """A frozen copy of the live form."""

    version: int
    event: int


class VersionsAnswer(_Answer):
    """The versions that are kept, and which are served."""

    versions: list[KeptVersion]
    served: dict[str, int] | None


class GuardAnswer(_Answer):
    """What the guard knows; null where a number is infinite."""

    wealth: dict[str, float | None]
    needed: dict[str, float | None]
    expected_events: dict[str, float | None]
    fallback: dict[str, float | None]
    credible: bool
    agreement: float
    served: dict[str, int]
    history: list[dict[str, Any]]


class ServedAnswer(_Answer):
    """The number of the commit, and the version that is served now."""

    seq: int
    version: int | None


class CompactAnswer(_Answer):
    """How many records, names of events and segments of vectors went."""

    records: int
    segments: int


class Share(_Answer):
    """A score, and how much of it was learned."""

    score: float
    linear: float
    remembered: float


class NearList(_Answer):
    """A judged list with a query nearby; the number of its record, where that is known."""

    seq: int | None
    similarity: float
    pull: float


class ExplainAnswer(_Answer):
    """The score of an item under each form, and the judged lists with the nearest queries.

    `personal` is what lists of the user who asked add to the scores of what is served and live.
    """

    item: str
    scores: dict[str, Share]
    personal: float
    nearest_lists: list[NearList]


class StatusAnswer(_Answer):
    """The process answers."""

    status: str


class ReadyAnswer(_Answer):
    """Collections that have stopped learning."""

    failed: list[str]


_REFUSALS = {
    401: "A known token is needed.",
    403: "The token is not good for this, or a page of another site has asked.",
    413: "More than the limits allow.",
    421: "Without tokens, only loopback names are served.",
    422: "What was sent does not fit.",
    429: "Too often, or too busy; try again after `Retry-After` seconds.",
    503: "Something that is needed cannot be reached, or learning has stopped.",
}
_MORE = {
    400: "The body is not JSON.",
    404: "It is not there.",
    409: "The collection is not in a state for this.",
    415: "The body is of a type that is not taken here.",
}


_REFUSAL = {"$ref": "#/components/schemas/Refusal"}


def answers(answer: type[BaseModel] | str, *more: int) -> dict[int | str, dict[str, Any]]:
    """The statuses of a route with their bodies.

    Parameters
    ----------
    answer : class or str
        The model of the answer where all went well, or its type if it is not JSON.
    *more : int
        Statuses of refusals beside those of all routes.
    """
    found: dict[int | str, dict[str, Any]] = {
        status: {"description": about, "content": {"application/json": {"schema": _REFUSAL}}}
        for status, about in sorted({**_REFUSALS, **{s: _MORE[s] for s in more}}.items())
    }
    fine: dict[str, Any] = {"model": answer}
    if isinstance(answer, str):
        fine = {"content": {answer: {}}}
    return {200: {"description": "Done.", **fine}, **found}
