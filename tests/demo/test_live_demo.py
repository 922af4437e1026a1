"""The demo of the service: a short one, from its first line to its report."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("fastapi")

from demo import people, session, tables
from demo.__main__ import main
from demo.process import free_port
from demo.shelves import IN_A_LETTER, WRITTEN, digits, help_desk


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("live") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "LISTS", 30)
        patch.setattr(session, "SABOTAGE", 10)
        patch.setattr(people, "MEASURED", 5)
        courses = main(["--out", str(out), "--seconds", "300"])
    return courses, out.read_text(encoding="utf-8")


def test_all_that_was_said_over_http_is_in_the_table(ran):
    courses, report = ran
    assert [course.shelf.name for course in courses] == ["help-desk", "digits"]
    for course in courses:
        assert (course.honest.lists, course.sabotage.lists) == (30, 10)
        assert course.honest.answers == 300 and 10 < course.honest.wrong < 55
        assert course.sabotage.wrong == course.sabotage.answers == 100
        assert set(course.measured) == set(tables.MOMENTS)
        text = tables.plain_table(course)
        for row in tables.rows(course):
            assert all(cell in text for cell in row)
        for sentence in tables.facts(course):
            assert sentence.split(";")[0][:40] in report.replace("&nbsp;", " ")


def test_what_saboteurs_taught_is_gone_when_they_are_forgotten(ran):
    for course in ran[0]:
        assert course.measured["live, forgotten"] == course.measured["live, taught"]
        assert sum(course.curve["columns"]["lists"]) <= 30


def test_questions_are_in_no_letter():
    shelf = help_desk()
    letters = [payload["text"] for payload in shelf.payloads]
    assert len(letters) == 47 * WRITTEN and len(IN_A_LETTER) == 3
    assert all(question not in letter for question in shelf.questions for letter in letters[:50])
    assert np.bincount(shelf.groups).tolist() == [WRITTEN] * 47
    assert np.bincount(shelf.wanted).tolist() == [4] * 47
    assert shelf.asked.sum() == 3 * 47


def test_digits_that_are_asked_for_are_not_in_the_collection():
    shelf = digits()
    stored = {row.tobytes() for row in shelf.vectors}
    assert not any(question.tobytes() in stored for question in shelf.questions)
    assert all(p["image"].startswith("data:image/png;base64,") for p in shelf.payloads)
    assert len(shelf.ids) + len(shelf.questions) == 1797


def test_a_port_that_is_taken_is_not_offered():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert free_port() != taken.getsockname()[1]


def test_a_slow_machine_gets_fewer_lists_but_not_none():
    class Slow(people.People):
        def __init__(self):
            self._random = np.random.RandomState(0)
            self._shelf, self._client = help_desk(), self

        def feedback(self, events):
            return {"seq": len(events)}

        def search(self, *question, **more):
            return {"impression": "i", "results": []}

        def guard(self):
            return {"history": []}

    over = -1.0
    assert Slow().teach(1000, over).lists == 0
    assert 20 <= Slow().teach(1000, over, least=20).lists < 1000
    assert Slow().teach(30, over, least=300).lists == 30
