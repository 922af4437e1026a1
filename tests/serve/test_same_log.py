"""Last month's log: `samewise adapt` and the service end in the same model, to the bit."""

from __future__ import annotations

import json

import numpy as np
from typer.testing import CliRunner

import samewise
from samewise.cli.app import app
from samewise.serve.collection import Collection
from samewise.serve.collection_stores import Settings
from samewise.serve.feedback_resolving import Said
from tests.serve.conftest import fill


def lines(world, n):
    """A log of judged lists, clicks, ranked lists and thumbs, as `samewise adapt` reads it."""
    for i in range(n):
        q, shown, y = world.judged(noise=0.05)
        line = {"query": world.items[q].tolist(), "event": f"e{i}", "user": f"u{i % 7}"}
        shown = shown.tolist()
        match i % 5:
            case 1:
                line |= {"shown": shown, "clicked": np.flatnonzero(y > 0)[:2].tolist()}
            case 2:
                line |= {"ranking": [shown[place] for place in np.argsort(-y, kind="stable")]}
            case 3:
                line |= {"item": shown[0], "thumb": bool(y[0] > 0), "against": shown[1:4]}
            case _:
                line |= {"shown": shown, "y": y.tolist(), "weight": 1.0 + (i % 3)}
        yield line


def as_said(line):
    """A line as feedback for the service."""
    names = lambda rows: [f"i{row}" for row in rows]  # noqa: E731
    more = {name: line[name] for name in ("query", "event", "user")}
    more["weight"] = line.get("weight", 1.0)
    if "ranking" in line:
        return Said("ranked", ranked=names(line["ranking"]), **more)
    if "thumb" in line:
        against = names(line["against"])
        return Said("thumb", item=f"i{line['item']}", up=line["thumb"], against=against, **more)
    shown = line["shown"]
    if "clicked" in line:
        clicked = names(shown[place] for place in line["clicked"])
        return Said("click", shown=names(shown), clicked=clicked, **more)
    liked, disliked = (
        names(row for row, answer in zip(shown, line["y"], strict=True) if answer == wanted)
        for wanted in (1, -1)
    )
    return Said("judged", shown=names(shown), liked=liked, disliked=disliked, **more)


def test_the_command_and_the_service_end_in_the_same_model(tmp_path, world):
    log = list(lines(world, 400))
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    np.save(tmp_path / "items.npy", world.items)
    options = ["--items", str(tmp_path / "items.npy"), "--out", str(tmp_path / "adapt.sw")]
    # The service has a log of its own, so the adapter keeps none.
    options += ["--no-log", "--seed", "0", "--json"]
    done = CliRunner().invoke(app, ["adapt", str(tmp_path / "events.jsonl"), *options])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["events"] == 400
    folder = tmp_path / "c"
    folder.mkdir()
    collection = Collection(folder, Settings(), snapshot_every=90)
    fill(collection, world)
    collection.start()
    for first in range(0, 400, 37):
        collection.feedback([as_said(line) for line in log[first : first + 37]])
    collection.close()
    again = Collection(folder)
    again.export_adapter(tmp_path / "served.sw")
    again.close()
    command, service = samewise.load(tmp_path / "adapt.sw"), samewise.load(tmp_path / "served.sw")
    assert command.n_events_ == service.n_events_ == 400
    assert command.guard_ == service.guard_
    # The command keeps the ids of events in the adapter, and the service in its database.
    assert list(command.log_.seen) == [line["event"] for line in log]
    command.log_ = service.log_
    command.save(tmp_path / "adapt.sw")
    assert (tmp_path / "adapt.sw").read_bytes() == (tmp_path / "served.sw").read_bytes()
