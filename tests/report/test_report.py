"""The report: one file, complete, escaped, and with the numbers of the evaluation."""

from __future__ import annotations

import base64
import re
import sys
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from samewise import LMNN, Bilinear, Mahalanobis, MultiMetricLMNN, PassiveAggressive, SiLA
from samewise.exceptions import InvalidInputError
from samewise.plots import projection
from samewise.protocols import gain, measure
from samewise.report import (
    ReportOptions,
    Section,
    bullets,
    code,
    paragraph,
    picture,
    table,
    write_report,
)
from samewise.report.cases import most_changed
from samewise.report.sentences import change, percent, retrieval_test, verification_test

VOID = {"meta", "link", "img", "br", "hr", "use", "path", "image"}


class Page(HTMLParser):
    """Elements with their attributes, and whether all that is opened is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.text = [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def read(path):
    return path.read_text(encoding="utf-8").replace("&nbsp;", " ")


@pytest.fixture
def without_pictures(monkeypatch):
    """For tests of the rest: drawing takes most of the time."""
    monkeypatch.setattr("samewise.report.html_report.drawings", lambda *args: [])


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 6)) * [3.0, 1, 1, 1, 1, 1]
    X[:, 1] += 2 * y
    return X[:60], y[:60], X[60:], y[60:]


@pytest.fixture(scope="module")
def learner(split):
    return LMNN(2).fit(*split[:2])


@pytest.fixture(scope="module")
def plain(split, learner, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report = write_report(path, learner, *split, ReportOptions(command="samewise report a & b"))
    return report, read(path)


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    X, y = load_digits(return_X_y=True)
    split = X[:150] / 16, y[:150], X[150:250] / 16, y[150:250]
    online = PassiveAggressive("pa1", 0.01, random_state=0).fit(*split[:2])
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(
        path, {"online": online, "form": online.metric_}, *split, ReportOptions(image_shape=(8, 8))
    )
    return read(path)


def test_the_file_needs_nothing_from_outside(plain, pictured):
    for html in (plain[1], pictured):
        assert not re.search(r"https?:|@import|<script|src=\"(?!data:)|url\((?!#)", html)
        page = Page(html)
        assert page.open == []
        assert [a["href"] for a in page.all("link")] == ["data:,"]
        assert all(a["href"].startswith("#") for a in page.all("a"))


def test_it_is_made_for_phones_the_dark_and_screen_readers(plain, pictured):
    for html in (plain[1], pictured):
        page = Page(html)
        assert {"header", "nav", "main", "section", "footer", "h1", "h2"} <= {
            tag for tag, _ in page.elements
        }
        assert any("width=device-width" in a.get("content", "") for a in page.all("meta"))
        assert "prefers-color-scheme: dark" in html
        assert all(a["role"] == "img" and a["aria-label"].strip() for a in page.all("svg"))
        assert all(a["alt"].strip() for a in page.all("img"))
        assert all(a["scope"] in ("row", "col") for a in page.all("th"))
        assert page.all("html")[0]["lang"] == "en"


def test_names_inside_pictures_are_unique_and_lead_somewhere(plain, pictured):
    for html in (plain[1], pictured):
        names = [a["id"] for _, a in Page(html).elements if "id" in a]
        assert len(names) == len(set(names))
        used = re.findall(r'(?:xlink:href="|url\(|<a href=")#([^")]+)', html)
        assert used and set(used) <= set(names)


def test_axes_have_the_color_of_the_text(plain):
    svg = plain[1][plain[1].index("<svg") : plain[1].index("</svg>")]
    assert "currentColor" in svg
    assert "#010203" not in plain[1] and "#000000" not in svg


def test_numbers_are_those_of_the_evaluation(plain, split, learner):
    report, html = plain
    before, _, after = report.measured
    assert [m.name for m in report.measured] == ["Euclidean", "cosine", "LMNN"]
    again = measure(learner.metric_, *split, name="LMNN")
    assert after.knn_error == again.knn_error
    assert after.verification_error == again.verification_error
    assert [(g.before, g.after) for g in report.gains] == [
        ("Euclidean", "LMNN"),
        ("cosine", "LMNN"),
    ]
    test = gain(measure(None, *split), again)
    assert (report.gains[0].mark, report.gains[0].p_value) == (test.mark, test.p_value)
    lines = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', html)
    cells = {name: re.sub(r"</?strong>", "", rest) for name, rest in lines}
    for m in (before, after):
        shown = re.findall("<td>(.*?)</td>", cells[m.name])
        assert shown[:3] == [percent(m.knn_error), percent(m.sknn_error), percent(m.precision[1])]
        assert shown[-2:] == [percent(m.mean_average_precision), percent(m.verification_error)]
    best = min(m.knn_error for m in report.measured)
    bold = [name for name, rest in lines[:3] if rest.startswith("<td><strong>")]
    assert bold == [m.name for m in report.measured if m.knn_error == best]


def test_making_is_told(plain):
    text = unescape(plain[1])
    assert "samewise report a & b" in text
    assert "Parameters of LMNN (LMNN)" in text and "push_weight" in text
    for package in ("Python", "samewise", "numpy", "scikit-learn"):
        assert f'<th scope="row">{package}</th>' in text


def test_hard_cases_name_rows_and_mark_wrong_neighbors(plain, split, learner):
    report, html = plain
    X, y, X_test, y_test = split
    changed = most_changed(report.measured[0], report.measured[2])
    euclidean = ((X_test[:, None] - X) ** 2).sum(axis=2)

    def points(distances, i):
        """Of the neighbors shown: five for the nearest if it is right, four for the next, …"""
        order = np.argsort(distances[i])[:5]
        return sum(5 - n for n, row in enumerate(order) if y[row] == y_test[i])

    learned = learner.metric_.cross(X_test, X)
    shown = {i: points(learned, i) - points(euclidean, i) for i in range(len(X_test))}
    better, worse = (
        [i for i in rows if sign * shown[i] > 0][:6]
        for rows, sign in zip(changed, (1, -1), strict=True)
    )
    assert f"{len(changed[0])} got better with LMNN and {len(changed[1])} worse" in html
    cases = re.findall(r'<article class="case">(.*?)</article>', html, flags=re.DOTALL)
    assert len(cases) == len(better) + len(worse) > 0
    for i, case in zip([*better, *worse], cases, strict=True):
        assert f"<h4>row {i}, class {y_test[i]}</h4>" in case
        line = case[case.index(">LMNN<") : case.index("<details>")]
        items = re.findall(r'class="item( wrong)?">row (\d+) \((\d)\)', line)
        assert [int(row) for _, row, _ in items] == np.argsort(learned[i])[:5].tolist()
        for mark, row, label in items:
            assert int(label) == y[int(row)]
            assert bool(mark) == (y[int(row)] != y_test[i])


def test_most_changed_are_decisions_first_then_precision(plain):
    report, _ = plain
    before, _, after = report.measured
    better, worse = most_changed(before, after)
    gained = np.flatnonzero(after.correct & ~before.correct)
    lost = np.flatnonzero(before.correct & ~after.correct)
    assert set(better[: len(gained)]) == set(gained) and set(worse[: len(lost)]) == set(lost)
    change = after.average_precision - before.average_precision
    rest = better[len(gained) :]
    assert (change[rest] > 0).all() and (np.diff(change[rest]) <= 0).all()
    same = before.correct == after.correct
    assert len(better) + len(worse) == len(gained) + len(lost) + (same & (change != 0)).sum()


def test_retrieval_is_tested_by_queries(plain):
    before, _, after = plain[0].measured
    test = retrieval_test(before, after)
    assert test.n_better == (after.average_precision > before.average_precision).sum()
    assert test.n_worse == (after.average_precision < before.average_precision).sum()


def test_verification_is_tested_by_examples(plain):
    report, html = plain
    before, cosine, after = report.measured
    assert np.array_equal(before.decided_pairs[:, :3], after.decided_pairs[:, :3])
    for m in report.measured:
        _, _, same, right = m.decided_pairs.T
        rates = [np.mean(right[same == kind] == 0) for kind in (0, 1)]
        assert np.mean(rates) == pytest.approx(m.verification_error)
    test = verification_test(before, after)
    assert test.difference == pytest.approx(after.verification_error - before.verification_error)
    shown = unescape(html).replace("<td>", " ").replace("</td>", " ").replace("\xa0", " ")
    for other in (before, cosine):
        assert f" {verification_test(other, after).verdict} " in shown
    assert f"{change(before.verification_error, after.verification_error)}: {test.verdict}" in shown
    assert "not tested for chance" not in html


def test_each_example_of_the_map_shows_which_row_it_is(plain, split, learner):
    maps = re.findall(r'<figure class="map">.*?</figure>', plain[1], flags=re.DOTALL)
    assert len(maps) == 2
    y_test = split[3]
    for html, form in zip(maps, [None, learner.metric_], strict=True):
        marks = re.findall(r'x="([-\d.]+)" y="([-\d.]+)"[^>]*><title>row (\d+), class (\d)<', html)
        assert sorted(int(row) for _, _, row, _ in marks) == list(range(60))
        assert all(y_test[int(row)] == int(label) for _, _, row, label in marks)
        # Each stands where its own row is: pictures have y from above.
        at = np.array([[float(x), -float(y)] for x, y, _, _ in marks])
        rows = [int(row) for _, _, row, _ in marks]
        ax = projection(form, *split[2:], ax=Figure().subplots())
        placed = np.empty((60, 2))
        for c, points in zip(np.unique(y_test), ax.collections, strict=True):
            placed[y_test == c] = points.get_offsets()
        for axis in (0, 1):
            assert np.corrcoef(at[:, axis], placed[rows, axis])[0, 1] > 0.999999


def test_images_are_shown_as_images(pictured):
    images = Page(pictured).all("img")
    assert len(images) % 11 == 0 and images, "a query, and five neighbors under two forms"
    for image in images:
        kind, data = image["src"].split(",", 1)
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data, validate=True).startswith(b"\x89PNG")
    assert "every example is judged when it arrives" in pictured


def test_every_text_is_escaped(split, learner, tmp_path):
    evil = "<script>alert('&')</script>"
    X, y, X_test, y_test = split
    path = tmp_path / "report.html"
    labels = np.array([f"<b>{c}&" for c in range(3)])
    write_report(
        path,
        {evil: learner},
        X,
        labels[y],
        X_test,
        labels[y_test],
        ReportOptions(
            title=evil,
            about=[evil],
            sections=[
                Section(
                    evil,
                    [
                        paragraph(evil),
                        bullets([evil]),
                        code(evil),
                        table([evil], [[evil]], caption=evil),
                        picture(lambda ax: ax.plot([1, 2]), alt=evil, caption=evil),
                    ],
                )
            ],
            ids=([evil] * 60, [evil] * 60),
            feature_names=[evil] * 6,
            parameters={evil: evil},
            command=evil,
        ),
    )
    html = read(path)
    assert "<script" not in html and "<b>" not in html
    assert html.count("&lt;script&gt;") > 20
    page = Page(html)
    assert page.open == [] and evil in page.text


@pytest.mark.parametrize("kind", ["similarity", "per class", "sparse", "bilinear"])
def test_other_forms_and_rows(split, tmp_path, kind):
    X, y, X_test, y_test = split
    learned = {
        "similarity": lambda: SiLA(random_state=0).fit(X, y),
        "per class": lambda: MultiMetricLMNN(2, random_state=0).fit(X, y),
        "sparse": lambda: Mahalanobis(np.diag([0, 1.0, 0, 0, 0, 0])),
        "bilinear": lambda: Bilinear(np.diag([0, 1.0, 0, 0, 0, 0])),
    }[kind]()
    if kind == "sparse":
        X, X_test = sp.csr_array(X.astype(np.float32)), sp.csr_array(X_test)
    path = tmp_path / "report.html"
    report = write_report(path, learned, X, y, X_test, y_test)
    html = read(path)
    assert Page(html).open == []
    # A similarity is compared with the cosine, a distance with the Euclidean one.
    before = "cosine" if kind in ("similarity", "bilinear") else "Euclidean"
    assert f"{report.measured[2].name} against {before}: the 3-NN error" in html
    if kind == "per class":
        assert np.isnan(report.measured[2].verification_error)
        assert "what each of its metrics makes of a circle" in html


@pytest.mark.usefixtures("without_pictures")
def test_nothing_changed_is_said(split, tmp_path):
    path = tmp_path / "report.html"
    report = write_report(path, Mahalanobis.identity(6), *split)
    assert report.gains[0].mark == "="
    assert "learned changes nothing for any test example." in read(path)


@pytest.mark.usefixtures("without_pictures")
def test_rows_are_shown_as_they_were_before_scaling(split, learner, tmp_path):
    X, y, X_test, y_test = split
    path = tmp_path / "report.html"
    shown = 1000 + np.round(X), 1000 + np.round(X_test)
    options = ReportOptions(shown=shown, feature_names=list("abcdef"))
    write_report(path, learner, X, y, X_test, y_test, options)
    cases = "".join(re.findall(r"<article.*?</article>", read(path), flags=re.DOTALL))
    cells = re.findall(r"<td>(.*?)</td>", cases)
    assert cells and all(990 <= int(cell) <= 1010 for cell in cells)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learned": {}}, "at least one form or learner"),
        ({"learned": {"cosine": Mahalanobis.identity(6)}}, "name other than 'Euclidean'"),
        ({"learned": "model"}, "a Form, or a fitted learner with a metric_. Got str"),
        ({"learned": LMNN()}, "a Form, or a fitted learner with a metric_. Got LMNN"),
        ({"y": [0, 1]}, "y must have one label for each of the 60 rows of X"),
        ({"X_test": np.full((60, 6), np.nan)}, "X_test contains NaN"),
        (
            {"options": ReportOptions(feature_names=["a"])},
            "feature_names must name the 6 features. Got 1",
        ),
        ({"options": ReportOptions(image_shape=(2, 2))}, "image_shape must be .* with 6 values"),
        (
            {"options": ReportOptions(ids=(["a"], ["b"]))},
            "an entry for each example. Got 60 rows and 1 ids",
        ),
    ],
)
@pytest.mark.usefixtures("without_pictures")
def test_what_is_refused_writes_nothing(split, tmp_path, given, message):
    names = ("X", "y", "X_test", "y_test")
    arguments = dict(zip(names, split, strict=True)) | {"learned": Mahalanobis.identity(6)} | given
    with pytest.raises(InvalidInputError, match=message):
        write_report(tmp_path / "report.html", **arguments)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_error_says_what_to_install(split, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'samewise\[plots\]'"):
        write_report(tmp_path / "report.html", Mahalanobis.identity(6), *split)


def test_pictures_are_the_same_each_time():
    one, two = (
        picture(lambda ax: ax.scatter([1, 2], [3, 4]), alt="Two points.", caption="Two.")
        for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize("long", [False, True])
def test_names_of_many_classes_do_not_hide_the_examples(long, tmp_path):
    rng = np.random.default_rng(0)
    y = np.array([f"a_rather_long_name_{c}" if long else str(c) for c in range(20)] * 10)
    X = rng.normal(size=(200, 3))
    ax = projection(None, X, y, ax=Figure().subplots())
    drawn = [text.get_text() for text in ax.texts]
    assert 0 < len(drawn) < 20 if long else len(drawn) == 20
    boxes = [text.get_window_extent().padded(-4) for text in ax.texts]
    touching = [a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n]]
    assert not any(touching)
    write_report(tmp_path / "r.html", Mahalanobis(np.eye(3)), X[:100], y[:100], X[100:], y[100:])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert ("medians of the classes or near them, where there is room." in text) == long
