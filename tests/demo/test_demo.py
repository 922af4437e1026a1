import base64
import contextlib
import io
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from demo import pictures, text
from demo.__main__ import main
from demo.queries import disagreements
from demo.study import DRAWS, PER_CLASS, load_split, small_stores

PAIRS = 4000


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "report.html"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        study = main(["--out", str(out), "--pairs", str(PAIRS)])
    return study, out, printed.getvalue()


class _Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.images, self.tags = [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attributes))


def test_table_has_a_line_for_each_metric(ran):
    study, out, printed = ran
    assert [row.metric for row in study.table] == ["Euclidean", "cosine", "learned"]
    for row in study.table:
        for error in (row.knn_error, row.few_error, row.verification_error):
            assert 0 < error < 0.5
        assert all(cell in printed for cell in text.cells(row))
    assert all(column in printed for column in text.COLUMNS)
    assert printed.endswith(f"report written to {out}\n")


def test_only_the_learned_metric_takes_time(ran):
    study = ran[0]
    assert study.row("Euclidean").training_seconds is None
    assert study.row("cosine").training_seconds is None
    assert study.row("learned").training_seconds > 0
    assert study.learner.n_seen_ == PAIRS


def test_learning_helps_verification_and_small_stores(ran):
    study = ran[0]
    before, after = study.row("Euclidean"), study.row("learned")
    assert after.verification_error < 0.7 * before.verification_error
    assert after.few_error < before.few_error


def test_report_needs_nothing_from_outside(ran):
    html = ran[1].read_text(encoding="utf-8")
    page = _Page(html)
    assert not re.search(r"https?:|src=\"(?!data:)|url\(|@import|<link|<script", html)
    assert "$" not in re.sub(r"<pre>.*?</pre>", "", html, flags=re.DOTALL)
    assert len(page.images) >= 4
    for image in page.images:
        kind, data = image["src"].split(",", 1)
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data, validate=True).startswith(b"\x89PNG")
        assert image["alt"].strip()


def test_report_shows_the_table_and_the_findings(ran):
    study, out, _ = ran
    shown = unescape(out.read_text(encoding="utf-8"))
    for row in study.table:
        assert all(f">{cell}</t" in shown for cell in text.cells(row))
    assert all(sentence in shown for sentence in text.findings(study) + text.conditions(study))
    assert text.code(study) in shown


def test_the_code_to_copy_gives_the_numbers_of_the_table(ran):
    study = ran[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(text.code(study), {})
    values = [float(line.split()[-1]) for line in printed.getvalue().splitlines()]
    learned = study.row("learned")
    np.testing.assert_allclose(values, [learned.verification_error, learned.knn_error])


def test_learning_curve_adds_up_to_the_totals(ran):
    learner = ran[0].learner
    rounds, error, loss = pictures.learning_curve(learner, 100)
    widths = np.diff(rounds, prepend=0)
    assert rounds[-1] == learner.n_seen_
    assert (error * widths).sum() == pytest.approx(learner.n_mistakes_)
    assert (loss * widths).sum() == pytest.approx(learner.loss_)


def test_disagreements_are_what_they_say(ran):
    study = ran[0]
    y_train, y_test = study.split.y_train, study.split.y_test
    found = disagreements(study)
    assert found.gained >= len(found.shown_gained) > 0
    assert found.lost >= len(found.shown_lost)
    for queries, right, wrong in (
        (found.shown_gained, "after", "before"),
        (found.shown_lost, "before", "after"),
    ):
        for query in queries:
            assert y_train[getattr(query, right)[0]] == y_test[query.row]
            assert y_train[getattr(query, wrong)[0]] != y_test[query.row]
            assert set(query.before) | set(query.after) <= set(study.small_store)


def test_split_keeps_test_images_apart():
    split = load_split()
    train = {row.tobytes() for row in split.X_train}
    assert not any(row.tobytes() in train for row in split.X_test)
    assert len(split.X_test) + len(split.X_train) == 1797


def test_small_stores_hold_as_many_of_each_class():
    y = load_split().y_train
    stores = small_stores(y)
    assert len(stores) == DRAWS
    for store in stores:
        assert len(np.unique(store)) == len(store)
        assert np.bincount(y[store]).tolist() == [PER_CLASS] * 10


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (0.2, 0.1, "falls from 20.0 % to 10.0 %"),
        (0.1, 0.2, "rises from 10.0 % to 20.0 %"),
        (0.1, 0.1, "stays at 10.0 %"),
    ],
)
def test_change_says_where_the_error_went(before, after, words):
    assert text.change(before, after) == words


@pytest.mark.parametrize("pairs", ["999", "40001", "many", "-5"])
def test_stream_length_is_checked(pairs, capsys):
    with pytest.raises(SystemExit):
        main([f"--pairs={pairs}"])
    assert f"expected a whole number from 1000 to 40000, got '{pairs}'" in capsys.readouterr().err
