"""samewise ask and samewise teach against a running service."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from samewise import Client
from samewise.cli.app import app

TEXTS = {
    "fox": "The fox in the forest",
    "sea": "The sea and its waves",
    "zoo": "Foxes and other animals",
    "sun": "The sun above the sea",
}


@pytest.fixture
def call(serve, monkeypatch):
    """Run a command against a service with four books; `code` is the exit code it must have."""
    url, _ = serve(["admin:0123456789abcdef", "read:fedcba9876543210"])
    with Client(url, "books", "0123456789abcdef") as client:
        client.make("text")
        client.put(list(TEXTS), payloads=[{"text": text} for text in TEXTS.values()])
    monkeypatch.setenv("SAMEWISE_URL", url)
    monkeypatch.setenv("SAMEWISE_CLIENT_TOKEN", "0123456789abcdef")

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        assert result.exit_code == code, (result.output, result.exception)
        return result

    run.url = url
    return run


def asked(call, *arguments):
    return json.loads(call("ask", "books", *arguments, "--json").stdout)


def test_ask_shows_items_and_the_impression(call):
    shown = call("ask", "books", "the fox in the forest", "-k", 2).stdout
    assert 'fox │ {"text": "The fox in the forest"}' in shown
    *_, word, impression = shown.split()
    assert (word, len(impression)) == ("impression", 24)
    found = asked(call, "the sea", "--which", "start", "--filters", '{"text": {"gte": "The se"}}')
    assert {one["id"] for one in found["results"]} == {"sea", "sun"}
    assert found["which"] == "start"
    explored = asked(call, "the sea", "-k", 3, "--explore", 1)
    assert "explored" in {one["why"] for one in explored["results"]}


def test_what_is_taught_is_learned(call):
    found = asked(call, "waves", "--user", "ann")
    ids = [one["id"] for one in found["results"]]
    judged = [f"{ids[0]}=-", f"{ids[1]}=0", f"{ids[2]}=+"]
    taught = call("teach", "books", found["impression"], *judged, "--event", "a=b", "--user", "ann")
    assert taught.stdout.startswith("event a=b: taught as record ")
    again = call("teach", "books", found["impression"], *judged, "--event", "a=b")
    assert again.stdout == taught.stdout.replace("taught", "known")
    clicks = ("--click", ids[1], "--click", ids[3], "--json")
    clicked = json.loads(call("teach", "books", found["impression"], *clicks).stdout)
    assert clicked["new"] and len(clicked["event"]) == 32
    with Client(call.url, "books", "0123456789abcdef") as client:
        client.search("waves", min_seq=clicked["seq"])
        first, second = client.log()
    assert first["liked"] == [ids[2]] and first["disliked"] == [ids[0]] and first["user"] == "ann"
    assert second["clicked"] == [ids[1], ids[3]]
    assert second["event"] == clicked["event"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "books"], "either QUERY or --vector."),
        (["ask", "books", "a", "--vector", "1"], "either QUERY or --vector."),
        (["ask", "books", "--vector", "1, x"], "--vector must be numbers, separated by commas"),
        (["ask", "books", "--vector", "1, 2"], "Got 2"),
        (["ask", "books", "a", "--filters", "{"], "--filters is no JSON object"),
        (["ask", "shelf", "a"], "There is no collection 'shelf'"),
        (["ask", "books", "a", "--url", "books.example"], "url must be an address such as"),
        (["ask", "books", "a", "--url", "http://[::"], "url must be an address such as"),
        (["ask", "books", "a", "--token", "wrong"], "A known token is needed."),
        (["teach", "books", "x"], "either items as ID=+"),
        (["teach", "books", "x", "a=+", "--click", "a"], "either items as ID=+"),
        (["teach", "books", "x", "a=1"], "must be ID=+, ID=- or ID=0. Got 'a=1'."),
        (["teach", "books", "x", "=+"], "must be ID=+, ID=- or ID=0. Got '=+'."),
        (["teach", "books", "x", "a=0"], "At least one item must be liked"),
        (["teach", "books", "x", "a=+"], "There is no impression 'x'"),
        (
            ["teach", "books", "x", "a=+", "--token", "fedcba9876543210"],
            "This needs a token with the scope 'feedback'.",
        ),
    ],
)
def test_errors_are_one_sentence(call, arguments, message):
    said = call(*arguments, code=1).stderr
    assert message in said and said.count("\n") == 1
