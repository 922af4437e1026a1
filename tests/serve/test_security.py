"""The security list, each line a test."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from samewise.cli.app import app
from samewise.exceptions import InvalidInputError
from samewise.serve import audit_log, http_context
from samewise.serve.audit_log import AuditLog
from samewise.serve.http_guarding import (
    Rates,
    RequestLimits,
    Tokens,
    TooOftenError,
    host_of,
    is_loopback,
)
from tests.serve.conftest import said

READ, FEEDBACK, ADMIN = (f"{scope}-secret-of-some-length" for scope in ("r", "f", "a"))
TOKENS = (f"read:{READ}", f"feedback:{FEEDBACK}", ADMIN)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def guarded(serve, world):
    _, http = serve(TOKENS)
    http.put("/collections/c", json={}, headers=bearer(ADMIN))
    items = [{"id": f"i{i}", "vector": v} for i, v in enumerate(world.items.tolist())]
    http.put("/collections/c/items", json={"items": items}, headers=bearer(ADMIN))
    return http


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "example.org", "::"])
def test_other_addresses_than_loopback_need_a_token(tmp_path, host):
    done = CliRunner().invoke(app, ["serve", str(tmp_path / "d"), "--host", host])
    assert done.exit_code == 1
    assert "can be reached by others: give --token" in done.stderr
    assert not (tmp_path / "d").exists()


def test_loopback_is_the_default():
    import inspect

    from samewise.cli.serve import serve

    assert inspect.signature(serve).parameters["host"].default == "127.0.0.1"
    assert [is_loopback(h) for h in ("localhost", "127.9.9.9", "::1", "10.0.0.1", "", "x")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    assert [host_of(h) for h in ("a:80", "[::1]:80", "a")] == ["a", "[::1]", "a"]


SCOPES = [
    ("GET", "/collections", None, "read"),
    ("GET", "/collections/c", None, "read"),
    ("GET", "/collections/c/items/i1", None, "read"),
    ("POST", "/collections/c/search", {"vector": [1.0] * 12}, "read"),
    ("GET", "/collections/c/versions", None, "read"),
    ("GET", "/collections/c/guard", None, "read"),
    ("GET", "/metrics", None, "read"),
    ("GET", "/whoami", None, "read"),
    ("POST", "/collections/c/compare", {"item": "i1"}, "read"),
    ("GET", "/collections/c/pick", None, "read"),
    ("GET", "/collections/c/map", None, "read"),
    ("GET", "/collections/c/hard", None, "read"),
    ("GET", "/collections/c/teachers", None, "read"),
    ("GET", "/collections/c/watch?follow=false", None, "read"),
    ("POST", "/collections/c/feedback", "feedback", "feedback"),
    ("DELETE", "/collections/c/events/e", None, "feedback"),
    ("PUT", "/collections/c", {}, "admin"),
    ("PUT", "/collections/c/items", {"items": [{"id": "x", "vector": [1.0] * 12}]}, "admin"),
    ("DELETE", "/collections/c/items", {"ids": ["x"]}, "admin"),
    ("POST", "/collections/c/start", {}, "admin"),
    ("POST", "/collections/c/promote", {}, "admin"),
    ("POST", "/collections/c/rollback", None, "admin"),
    ("POST", "/collections/c/reset", None, "admin"),
    ("POST", "/collections/c/compact", None, "admin"),
    ("DELETE", "/collections/c/events?user=u", None, "admin"),
    ("GET", "/collections/c/events?follow=false", None, "admin"),
    ("GET", "/collections/c/log", None, "admin"),
    ("GET", "/collections/c/adapter", None, "admin"),
    # The last: it is gone after.
    ("DELETE", "/collections/c", None, "admin"),
]


def test_each_route_needs_its_scope(guarded, world):
    order = ["read", "feedback", "admin"]
    for method, path, body, needed in SCOPES:
        more = {} if body is None else {"json": body}
        if body == "feedback":
            more = {"json": {"events": [said(world, "e")]}}
        for scope, token in zip(order, (READ, FEEDBACK, ADMIN), strict=True):
            answer = guarded.request(method, path, headers=bearer(token), **more)
            allowed = order.index(scope) >= order.index(needed)
            assert (answer.status_code == 403) is not allowed, (method, path, scope)
            assert answer.status_code < 500 and answer.status_code != 401
        for headers in (
            {},
            bearer("wrong"),
            {"Authorization": "Bearer"},
            {"Authorization": f"Basic {ADMIN}"},
        ):
            answer = guarded.request(method, path, headers=headers, **more)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_all_routes_are_in_the_list_of_scopes(guarded):
    openapi = guarded.get("/openapi.json", headers=bearer(READ)).json()
    listed = {(m, p.partition("?")[0]) for m, p, _, _ in SCOPES}
    there = {
        (method.upper(), path.format(collection="c", id="i1", event="e"))
        for path, methods in openapi["paths"].items()
        for method in methods
    }
    # Health needs no token; explain and the import of an adapter are tested where they are used.
    others = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/collections/c/explain")}
    assert there - listed == others | {("PUT", "/collections/c/adapter")}


def test_explaining_and_importing_need_their_scopes(guarded):
    path = "/collections/c/adapter"
    headers = {**bearer(FEEDBACK), "Content-Type": "application/octet-stream"}
    assert guarded.put(path, content=b"x", headers=headers).status_code == 403
    path = "/collections/c/explain?impression=x&item=i1"
    assert guarded.get(path).status_code == 401
    assert guarded.get(path, headers=bearer(READ)).status_code == 404
    assert guarded.get("/healthz").status_code == 200


def test_tokens_are_compared_in_constant_time_and_not_kept(monkeypatch):
    compared = []
    import hmac

    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(a) or real(a, b))
    tokens = Tokens(TOKENS)
    assert tokens.caller(f"Bearer {READ}").scope == "read"
    # All of them, also after one has matched.
    assert len(compared) == 3
    assert READ not in repr(vars(tokens))
    assert READ not in tokens.caller(f"Bearer {READ}").name
    with pytest.raises(InvalidInputError, match="at least 16"):
        Tokens(["read:short"])


def test_a_name_that_points_here_is_not_served(books):
    """DNS rebinding: the page of another site has its own name point to loopback."""
    answer = books.get("/collections", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert books.get("/collections", headers={"Host": "localhost:8350"}).status_code == 200


def test_a_page_of_another_site_cannot_send_requests(books):
    for origin in ("https://evil.example", "null", "http://localhost.evil.example"):
        answer = books.post("/collections/c/reset", headers={"Origin": origin})
        assert answer.status_code == 403
    own = f"http://{books.base_url.host}:{books.base_url.port}"
    assert books.post("/collections/c/reset", headers={"Origin": own}).status_code == 200


SMALL = RequestLimits(body=20_000, items=5, events=3, k=4, width=16, payload=50, weight=2, rate=4)


@pytest.fixture
def limited(serve, world):
    _, http = serve(limits=SMALL)
    http.put("/collections/c", json={})
    for first in range(0, 20, 5):
        rows = world.items[first : first + 5].tolist()
        items = [{"id": f"i{first + i}", "vector": v} for i, v in enumerate(rows)]
        assert http.put("/collections/c/items", json={"items": items}).status_code == 200
    return http


def test_limits_of_a_request(limited, world):
    item = {"id": "x", "vector": [1.0] * 12}
    items = "/collections/c/items"
    for method, path, body, message in (
        ("PUT", items, {"items": [{**item, "id": str(i)} for i in range(6)]}, "At most 5 items"),
        ("PUT", items, {"items": [{**item, "payload": {"a": "x" * 60}}]}, "more than 50 bytes"),
        ("PUT", items, {"items": [{"id": "x", "vector": [1.0] * 17}]}, "at most 16 numbers"),
        ("DELETE", items, {"ids": list("abcdef")}, "At most 5 items"),
        ("POST", "/collections/c/search", {"vector": [1.0] * 12, "k": 5}, "At most 4"),
    ):
        answer = limited.request(method, path, json=body)
        assert (answer.status_code, message in answer.text) == (413, True), answer.text
    event = {"type": "thumb", "item": "i1", "up": True, "query": [1.0] * 12}
    many = limited.post("/collections/c/feedback", json={"events": [event] * 4})
    assert (many.status_code, "At most 3 events" in many.text) == (413, True)
    heavy = limited.post("/collections/c/feedback", json={"events": [{**event, "weight": 3}]})
    assert heavy.status_code == 422
    assert limited.get("/collections/c").json()["items"] == 20


def test_a_long_body_is_refused_before_it_is_read(limited):
    path = "/collections/c/items"
    told = limited.put(path, content=b"x" * 20_001)
    assert (told.status_code, "20000 bytes" in told.text) == (413, True)

    def pieces():
        for _ in range(30):
            yield b"x" * 1000

    try:
        answer = limited.put(path, content=pieces(), headers={"Content-Type": "application/json"})
    except httpx.WriteError:
        # The service may close the connection before all of it was sent.
        return
    assert answer.status_code == 413


def test_a_token_may_have_a_largest_weight(serve, world, monkeypatch):
    """And weights do not get around the rate: an event of weight 2 counts as two."""
    # Time stands still: nothing is filled up meanwhile.
    monkeypatch.setattr(http_context, "Rates", lambda rate: Rates(rate, lambda: 0.0))
    _, http = serve(("feedback@2:" + FEEDBACK, ADMIN), limits=RequestLimits(rate=10))
    http.put("/collections/c", json={}, headers=bearer(ADMIN))
    items = [{"id": f"i{i}", "vector": v} for i, v in enumerate(world.items.tolist())]
    http.put("/collections/c/items", json={"items": items}, headers=bearer(ADMIN))
    event = {"type": "thumb", "item": "i1", "up": True, "query": [1.0] * 12, "weight": 2.5}
    for token, weight, n, status in (
        (FEEDBACK, 2.5, 1, 422),
        (FEEDBACK, 2, 8, 200),
        (FEEDBACK, 2, 8, 429),
        (ADMIN, 10, 1, 200),
        (ADMIN, 10.5, 1, 422),
        (ADMIN, 10, 2, 429),
    ):
        events = {"events": [{**event, "weight": weight}] * n}
        answer = http.post("/collections/c/feedback", json=events, headers=bearer(token))
        assert answer.status_code == status, (weight, n, answer.text)
        if status == 422:
            assert "weight of an event" in answer.text
        if status == 429:
            assert int(answer.headers["Retry-After"]) >= 1
    assert Tokens(["admin@x:something-long"]).caller("Bearer admin@x:something-long").weight > 1e9


def test_too_many_events_a_second(limited):
    event = {"type": "thumb", "item": "i1", "up": True, "query": [1.0] * 12}
    answers = [
        limited.post("/collections/c/feedback", json={"events": [event] * 3}) for _ in range(6)
    ]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused and answers[0].status_code == 200
    assert int(refused[0].headers["Retry-After"]) >= 1


def test_each_caller_has_a_bucket():
    now = [0.0]
    rates = Rates(10, lambda: now[0])
    rates.take("a", 20)
    with pytest.raises(TooOftenError) as refused:
        rates.take("a", 15)
    assert refused.value.seconds == 2
    rates.take("b", 20)
    now[0] = 1.5
    rates.take("a", 15)
    with pytest.raises(TooOftenError):
        rates.take("a", 1)


NASTY = "'; DROP TABLE log; --\n<script>alert(1)</script>\x1b[31m../../etc\u2028\u0000"


def test_what_users_send_stays_text(books, world, tmp_path):
    """SQL, paths, HTML, terminals, lines of a stream: a name is nothing but a name."""
    q = world.items[3].tolist()
    item = {"id": NASTY, "vector": q, "payload": {NASTY: NASTY}}
    assert books.put("/collections/c/items", json={"items": [item]}).status_code == 200
    asked = {"vector": q, "k": 2, "user": NASTY, "filters": {NASTY: NASTY}}
    found = books.post("/collections/c/search", json=asked).json()
    assert [result["id"] for result in found["results"]] == [NASTY]
    event = {
        "type": "thumb",
        "item": NASTY,
        "up": True,
        "impression": found["impression"],
        "user": NASTY,
        "event": NASTY,
    }
    assert books.post("/collections/c/feedback", json={"events": [event]}).json()["new"] == 1
    stream = books.get("/collections/c/events?follow=false&after=3").text
    assert len(stream.split("\n\n")) == 2 and stream.count("\n") == 4
    assert json.loads(stream.partition("data: ")[2])["user"] == NASTY
    for method, path in (
        ("PUT", "/collections/..%2F..%2Fetc"),
        ("PUT", "/collections/%2e%2e"),
        ("PUT", "/collections/A%00b"),
    ):
        assert books.request(method, path, json={}).status_code in (404, 405, 422)
    refused = books.get("/collections/%3Cscript%3E/guard")
    assert refused.headers["content-type"] == "application/json"
    assert books.delete("/collections/c/events", params={"user": NASTY}).json()["count"] == 1
    assert books.get("/collections/c").json()["items"] == 401
    assert not any(".." in path.name or "etc" in path.name for path in tmp_path.rglob("*"))


def test_admin_actions_are_in_the_audit_log(guarded, tmp_path):
    guarded.post("/collections/c/reset", headers=bearer(ADMIN))
    guarded.post("/collections/c/reset", headers=bearer(READ))
    lines = (tmp_path / "data" / "audit.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [e["action"] for e in entries] == ["make", "put items", "reset", "reset"]
    assert [e["outcome"] for e in entries] == ["allowed"] * 3 + ["refused"]
    assert entries[2]["who"].startswith("admin-") and entries[3]["who"].startswith("read-")
    assert ADMIN not in "".join(lines)


def test_an_entry_of_the_audit_log_is_one_line(tmp_path):
    log = AuditLog(Path(tmp_path / "a"))
    log.add("me", "reset", 'c\n{"who": "forged"}', "allowed")
    log.close()
    (line,) = (tmp_path / "a").read_text().splitlines()
    assert json.loads(line)["collection"] == 'c\n{"who": "forged"}'


def test_the_audit_log_begins_a_new_file_at_a_size(tmp_path, monkeypatch):
    monkeypatch.setattr(audit_log, "MOST_BYTES", 500)
    log = AuditLog(tmp_path / "audit.jsonl")
    for n in range(60):
        log.add(f"me-{n}", "reset", "c", "allowed")
    log.close()
    files = [path for path in audit_log.audit_files(tmp_path / "audit.jsonl") if path.exists()]
    assert sorted(tmp_path.iterdir()) == sorted(files) and len(files) == 1 + audit_log.KEPT
    assert max(path.stat().st_size for path in files) <= 500
    lines = [line for path in files[::-1] for line in path.read_text().splitlines()]
    who = [json.loads(line)["who"] for line in lines]
    # The oldest went; what is left is in order.
    assert who == [f"me-{n}" for n in range(60 - len(who), 60)] and 35 < len(who) < 60
    # Also where the program was started again meanwhile.
    log = AuditLog(tmp_path / "audit.jsonl")
    log.add("you", "reset", "c", "allowed")
    log.close()
    assert "you" in files[0].read_text()


def test_no_code_comes_over_http(books):
    """A function that makes vectors is named by who starts the service."""
    answer = books.put("/collections/d", json={"encoder": "os:system"})
    assert answer.status_code == 422
    books.put("/collections/d", json={"encoder": "callable"})
    item = {"items": [{"id": "a", "payload": {"text": "x"}}]}
    answer = books.put("/collections/d/items", json=item)
    assert (answer.status_code, "--encoder" in answer.text) == (422, True)
