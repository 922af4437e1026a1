"""The command `samewise adapt`: a log through an adapter, in process, killed, and damaged."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
import time

import numpy as np
import pytest

pytest.importorskip("typer")
import pandas as pd
from typer.testing import CliRunner

from samewise import LiveAdapter, load
from samewise.adapt import Click, RankedList, Thumb
from samewise.adapt.replay import MOST_PROBLEMS, LogReplay
from samewise.cli.app import app
from tests.adapt.conftest import World
from torture.killing import ended, forked


def lines(entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def judged(world, n, start=0):
    found = []
    for k in range(n):
        q, shown, y = world.judged()
        entry = {"event": start + k, "user": f"u{k % 5}", "query": q}
        found.append(entry | {"shown": shown.tolist(), "y": y.tolist()})
    return found


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = World()
    np.save("items.npy", world.items)
    return world


BASIC = ("--items", "items.npy", "--queries", "items.npy")


def call(*arguments, code=0, **more):
    result = CliRunner().invoke(app, ["adapt", *map(str, arguments)], **more)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def write(entries, name="events.jsonl"):
    with open(name, "w") as file:
        file.write(lines(entries))
    return name


def bytes_of(name):
    with open(name, "rb") as file:
        return file.read()


def test_the_command_equals_the_adapter_in_process(world):
    items = world.items
    adapter = LiveAdapter(margin=0.4, items=items, random_state=3).fit(items)
    entries = judged(world, 60)
    for entry in entries:
        q = items[entry["query"]]
        adapter.feedback(q, entry["shown"], entry["y"], event=entry["event"], user=entry["user"])
    more = [
        (
            {"query": 3, "shown": [4, 5, 6], "clicked": [2], "weight": 0.5},
            Click([], [4, 5, 6], [2]),
        ),
        (
            {"query": 3, "shown": [4, 5, 6], "clicked": [0], "teams": [0, 1, 0]},
            Click([], [4, 5, 6], [0], [0, 1, 0]),
        ),
        ({"query": 3, "ranking": [9, 8, 7]}, RankedList([], [9, 8, 7])),
        ({"query": 3, "item": 12, "thumb": "down"}, Thumb([], 12, False)),
        ({"query": 3, "item": 13, "thumb": True}, Thumb([], 13)),
        ({"query": 3, "item": 13, "same": True, "against": [1, 2]}, Thumb([], 13, True, [1, 2])),
        ({"query": 3, "item": 14, "same": False}, Thumb([], 14, False)),
    ]
    for entry, said in more:
        event = type(said)(items[3], *list(vars(said).values())[1:])
        adapter.feedback(event, weight=entry.get("weight", 1.0))
    write([*entries, *(entry for entry, _ in more), entries[0]])
    adapter.save("wanted.sw")
    result = call("events.jsonl", *BASIC, "--margin", 0.4, "--seed", 3, "--out", "found.sw")
    assert bytes_of("found.sw") == bytes_of("wanted.sw")
    assert result.stderr == ""
    said = " ".join(result.stdout.split())
    assert "67 events (60 judged lists, 1 ranked lists, 2 clicks, 4 thumbs), 1 seen before" in said
    assert not os.path.exists("found.sw.checkpoint")
    assert load("found.sw").n_events_ == 67


def test_the_course_is_what_the_forms_say_before_each_list(world):
    items = world.items
    entries = judged(world, 700)
    adapter = LiveAdapter(items=items, random_state=0).fit(items)
    found = []
    for entry in entries:
        q, shown, y = items[entry["query"]], items[entry["shown"]], np.array(entry["y"])
        row = []
        for form in (adapter.start, adapter.served, adapter.live):
            s = shown @ form.embed_query(q)
            pairs = s[y > 0][:, None] - s[y < 0]
            first = y[np.argmax(shown @ form.embed_query(q, "first"))] > 0
            row.append((np.mean((pairs > 0) + 0.5 * (pairs == 0)), first))
        found.append(row)
        adapter.feedback(q, entry["shown"], entry["y"])
    found = np.array(found, dtype=float)
    content = json.loads(call(write(entries), *BASIC, "--json").stdout)
    assert [p["last_list"] for p in content["portions"]] == [100, 200, 300, 400, 500, 600, 700]
    for p in content["portions"]:
        wanted = found[p["first_list"] - 1 : p["last_list"]].mean(axis=0)
        np.testing.assert_allclose(list(p["auc"].values()), wanted[:, 0], atol=1e-3)
        np.testing.assert_allclose(list(p["first_liked"].values()), wanted[:, 1], atol=1e-9)
    assert content["changes"] == list(adapter.guard_.history) and content["changes"]
    test = content["against_start"]["live"]["auc"]
    better = (found[:, 2, 0] > found[:, 0, 0]).sum()
    assert abs(test["n_better"] - better) <= 2 and test["p_value"] < 0.01
    assert content["verdicts"]["live"]["auc"] == "better, p < 0.001"
    shown = call("events.jsonl", *BASIC).stdout
    assert "order promoted after" in shown and "live better, p < 0.001" in shown


def test_vectors_in_the_log_and_other_files(world):
    entries = judged(world, 30)
    plain = json.loads(call(write(entries), *BASIC, "--json").stdout)
    names = [f"item {k}" for k in range(len(world.items))]
    by_name = [
        e
        | {"query": world.items[e["query"]].tolist()}
        | {"shown": [names[row] for row in e["shown"]]}
        for e in entries
    ]
    pd.DataFrame({"id": names, "vector": list(world.items)}).to_parquet("lists.parquet")
    columns = {f"x{j}": world.items[:, j] for j in range(world.items.shape[1])}
    pd.DataFrame({"name": names, **columns}).to_parquet("columns.parquet")
    np.savez("items.npz", X=world.items)
    with gzip.open("events.jsonl.gz", "wt") as file:
        file.write(lines(by_name))
    for items in (("lists.parquet",), ("columns.parquet", "--id", "name")):
        found = json.loads(call("events.jsonl.gz", "--items", *items, "--json").stdout)
        assert found == plain
    found = call(
        "-", "--items", "items.npz", "--queries", "items.npz", "--json", input=lines(entries)
    )
    assert json.loads(found.stdout) == plain
    rows = [e | {"shown": world.items[e["shown"]].tolist()} for e in entries]
    assert json.loads(call(write(rows, "v.jsonl"), *BASIC, "--json").stdout) == plain


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"query": 1, "shown": [2, 3], "y": [1', "is not JSON"),
        ("[1]", "should be an object, not list"),
        ('{"query": 1, "shown": [2, 3]}', "one of the fields y, clicked, ranking, thumb, same"),
        ('{"query": 1, "shown": [2], "y": [1], "clicked": [0]}', "Got y and clicked"),
        ('{"shown": [2, 3], "y": [1, -1]}', "an event has a query"),
        ('{"query": 400, "shown": [2, 3], "y": [1, -1]}', "400 is no id of items.npy"),
        ('{"query": 1, "shown": [2, 400], "y": [1, -1]}', "ids are 0 to 399"),
        ('{"query": 1, "shown": [2, "3"], "y": [1, -1]}', "'3' is no id of items.npy"),
        ('{"query": 1, "shown": [2, true], "y": [1, -1]}', "must be an integer or text. Got True"),
        ('{"query": 1, "shown": [2, 2], "y": [1, -1]}', "may be shown once"),
        ('{"query": 1, "shown": [], "y": []}', "at least one. Got []"),
        ('{"query": 1, "shown": [2, 3], "y": [1, 2]}', "y must be +1"),
        ('{"query": 1, "shown": [2, 3], "y": [1]}', "an answer for each of the 2"),
        ('{"query": 1, "shown": [2, 3], "y": [[1], 2]}', ""),
        ('{"query": 1, "shown": [2, 3], "clicked": [5]}', "clicked must be places"),
        ('{"query": 1, "item": 2, "thumb": "high"}', "'up', 'down', true or false"),
        ('{"query": 1, "item": null, "same": true}', "must be an integer or text. Got None"),
        ('{"query": [1, 2], "shown": [2, 3], "y": [1, -1]}', "one vector of 12 numbers"),
        ('{"query": [NaN' + 11 * ", 1" + '], "shown": [2, 3], "y": [1, -1]}', "finite"),
        ('{"query": [1' + 400 * "0" + 11 * ", 1" + '], "shown": [2, 3], "y": [1, -1]}', ""),
        ('{"query": 1, "shown": [2, 3], "y": [1, -1], "weight": "much"}', "weight must be"),
        ('{"query": 1, "shown": [2, 3], "y": [1, -1], "user": [7]}', "Users and events are named"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_used_is_skipped_with_a_sentence(world, line, said):
    entries = judged(world, 6)
    call(write(entries), *BASIC, "--out", "whole.sw")
    text = lines(entries).splitlines(keepends=True)
    with open("events.jsonl", "w") as file:
        file.write("".join(text[:3]) + line + "\n\n" + "".join(text[3:]))
    result = call("events.jsonl", *BASIC, "--out", "found.sw", "--json")
    assert bytes_of("found.sw") == bytes_of("whole.sw")
    content = json.loads(result.stdout)
    assert content["counts"]["skipped"] == 1
    assert result.stderr.startswith("skipped: events.jsonl:4") and said in result.stderr
    assert content["problems"][0] in result.stderr
    strict = call("events.jsonl", *BASIC, "--strict", code=1)
    assert strict.stderr.startswith("error: events.jsonl:4") and strict.stderr.count("\n") == 1


def test_many_bad_lines_are_counted_and_a_few_described(world):
    with open("events.jsonl", "w") as file:
        file.write("{}\n" * 100 + lines(judged(world, 3)))
    result = call("events.jsonl", *BASIC, "--json")
    assert json.loads(result.stdout)["counts"]["skipped"] == 100
    assert result.stderr.count("\n") == MOST_PROBLEMS + 1
    assert "only counted" in result.stderr.splitlines()[-1]
    write([{}])
    assert "no event that can be used. The first" in call("events.jsonl", *BASIC, code=1).stderr


def test_what_cannot_be_read_is_one_sentence(world):
    events = write(judged(world, 3))
    np.save("other.npy", np.eye(5))
    np.save("objects.npy", np.array([{}, []], dtype=object))
    np.save("row.npy", np.ones(5))
    pd.DataFrame({"id": [1, 1], "vector": [[1.0, 2.0], [2.0, 1.0]]}).to_parquet("twice.parquet")
    pd.DataFrame({"id": [1, 2], "vector": [[1.0], [2.0, 1.0]]}).to_parquet("uneven.parquet")
    pd.DataFrame({"id": [1, 2], "text": ["a", "b"]}).to_parquet("text.parquet")
    with gzip.open("cut.jsonl.gz", "wb") as file:
        file.write(lines(judged(world, 400)).encode())
    with open("cut.jsonl.gz", "r+b") as file:
        file.truncate(os.path.getsize("cut.jsonl.gz") // 2)
    for arguments, said in [
        ((events, "--items", "none.npy"), "there is no file none.npy"),
        (("none.jsonl", *BASIC), "there is no file none.jsonl"),
        ((events, "--items", "objects.npy"), "is no .npy file of a plain array"),
        ((events, "--items", "row.npy"), "a row for each vector"),
        ((events, "--items", "items.npy", "--queries", "other.npy"), "they must be as long"),
        ((events, "--items", "twice.parquet"), "has the id '1' twice"),
        ((events, "--items", "uneven.parquet"), "rows of numbers of one length"),
        ((events, "--items", "text.parquet"), "rows of numbers of one length"),
        ((events, "--items", "text.parquet", "--id", "key"), "no column 'key'"),
        ((events, "--items", "items.npy"), "no event that can be used"),
        ((events, *BASIC, "--margin", "-1"), "margin"),
        ((events, *BASIC, "--out", "no/folder.sw"), "There is no folder"),
        (("cut.jsonl.gz", *BASIC), "is damaged or cut off"),
    ]:
        said_by = call(*arguments, code=1).stderr.splitlines()[-1]
        assert said_by.startswith("error: ") and said in said_by, said_by
        assert "unexpected" not in said_by


# Killed


def killed_after(n, text, *arguments):
    """Feed n lines to the command in a process of its own; kill it when it has kept them."""
    reading, writing = os.pipe()

    def work():
        os.close(writing)
        os.dup2(reading, 0)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
        app(["adapt", "-", *map(str, arguments)])

    child = forked(work)
    os.close(reading)
    with os.fdopen(writing, "w") as end:
        end.write("".join(text[:n]))
        end.flush()
        latest = time.monotonic() + 60
        while not kept(n) and time.monotonic() < latest:
            time.sleep(0.02)
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL


def kept(n):
    """Whether the checkpoint of as many lines is there."""
    try:
        return load("found.sw.checkpoint").n_lines == n // 50 * 50
    except FileNotFoundError:
        return False


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX systems")
def test_a_killed_run_goes_on_to_the_same_adapter(world):
    text = lines(judged(world, 620)).splitlines(keepends=True)
    text.insert(20, "{\n")
    whole = call("-", *BASIC, "--out", "whole.sw", input="".join(text))
    arguments = (*BASIC, "--out", "found.sw", "--every", 50)
    for n in (60, 310, 600):
        killed_after(n, text, *arguments)
        assert kept(n) and not os.path.exists("found.sw")
    result = call("-", *arguments, input="".join(text))
    assert bytes_of("found.sw") == bytes_of("whole.sw")
    assert result.stdout == whole.stdout.replace("whole.sw", "found.sw")
    assert result.stderr == whole.stderr and "skipped: standard input:21" in result.stderr
    assert "promoted" in result.stdout and not os.path.exists("found.sw.checkpoint")


def test_a_checkpoint_of_something_else_is_noticed(world, monkeypatch):
    entries = judged(world, 120)

    def stop(*_):
        raise KeyboardInterrupt

    arguments = ("--out", "found.sw", "--every", 50)
    with monkeypatch.context() as patch:
        patch.setattr(LiveAdapter, "save", stop)
        said = call(write(entries), *BASIC, *arguments, code=130).stderr
    assert "the same command goes on from the last checkpoint" in said
    kept = bytes_of("found.sw.checkpoint")
    np.save("others.npy", world.items + 0.01)

    def refused(*given):
        said = call(*given, *arguments, code=1).stderr
        assert bytes_of("found.sw.checkpoint") == kept and not os.path.exists("found.sw")
        return said

    assert "another --margin and another --seed" in refused(
        "events.jsonl", *BASIC, "--margin", 0.5, "--seed", 1
    )
    others = ("--items", "others.npy", "--queries", "items.npy")
    assert "another --items." in refused("events.jsonl", *others)
    changed = write([*entries[:10], entries[11], entries[10], *entries[12:]], "changed.jsonl")
    assert "The first 100 lines of the log are not those" in refused(changed, *BASIC)
    assert "has 41 lines, fewer than the 100" in refused(write(entries[:40], "less.jsonl"), *BASIC)
    with open("found.sw.checkpoint", "r+b") as file:
        file.truncate(len(kept) // 2)
    assert "Delete it to begin anew" in call("events.jsonl", *BASIC, *arguments, code=1).stderr
    with open("found.sw.checkpoint", "wb") as file:
        file.write(kept)
    # Lines that came since are replayed too.
    call(write([*entries, *judged(world, 5, 120)]), *BASIC, *arguments)
    call("events.jsonl", *BASIC, "--out", "whole.sw")
    assert bytes_of("found.sw") == bytes_of("whole.sw")


def test_a_forged_checkpoint_is_refused(world):
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    replay = LogReplay(adapter, {})
    replay.given = {"a": 1}
    replay.save("found.sw.checkpoint")
    arguments = (write(judged(world, 2)), *BASIC, "--out", "found.sw")
    assert "cannot be used" in call(*arguments, code=1).stderr
    adapter.save("found.sw.checkpoint")
    assert "is no checkpoint of a replay" in call(*arguments, code=1).stderr
