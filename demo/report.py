"""One page with everything in it: no other file, no network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template

import numpy as np
from sklearn.decomposition import PCA

from demo import pictures, text
from demo.queries import Query, disagreements
from demo.study import N_NEIGHBORS, PER_CLASS, Split, Study
from samewise import KNNClassifier

_PAGE = Path(__file__).with_name("page.html")


def render(study: Study) -> str:
    """The report as HTML."""
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        table=_table(study),
        findings=_items(text.findings(study)),
        conditions=_items(text.conditions(study)),
        curve=_curve(study),
        spectrum=_spectrum(study),
        planes=_planes(study),
        queries=_queries(study),
        code=escape(text.code(study)),
    )


def _items(sentences: list[str]) -> str:
    return "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)


def _table(study: Study) -> str:
    errors = np.array(
        [[row.knn_error, row.few_error, row.verification_error] for row in study.table]
    )
    best = errors == errors.min(axis=0)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in text.COLUMNS)
    body = ""
    for row, marks in zip(study.table, best, strict=True):
        first, *rest = text.cells(row)
        body += f'<tr><th scope="row">{escape(first)}</th>'
        for value, is_best in zip(rest, [*marks, False], strict=True):
            body += f"<td{' class=best' if is_best else ''}>{escape(value)}</td>"
        body += "</tr>\n"
    return f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>"


def _figure(source: str, alt: str, caption: str) -> str:
    return (
        f'<figure><img src="{source}" alt="{escape(alt)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _curve(study: Study) -> str:
    width = max(study.n_pairs // 40, 50)
    rounds, error, loss = pictures.learning_curve(study.learner, width)
    first, last = text.percent(error[0]), text.percent(error[-1])
    return _figure(
        pictures.curve_picture(rounds, error, loss),
        f"Two curves over {study.n_pairs} pairs: errors go from {first} to {last} and mean hinge "
        f"loss from {loss[0]:.2f} to {loss[-1]:.2f}.",
        f"Every pair is judged when it arrives, before it is learned from. Of the first {width} "
        f"pairs {first} were judged wrongly, of the last {width} {last}. The pairs are all "
        "different, but the images in them return; the error on pairs of new images is the one in "
        f"the table, {text.percent(study.row('learned').verification_error)}.",
    )


def _spectrum(study: Study) -> str:
    eigenvalues = study.learner.metric_.eigenvalues
    shares = eigenvalues / eigenvalues.sum()
    d = study.split.X_train.shape[1]
    half = int(np.searchsorted(np.cumsum(shares), 0.5)) + 1
    return _figure(
        pictures.spectrum_picture(shares, d),
        f"Bars falling from {text.percent(shares[0])} to near zero, against a flat line at "
        f"{text.percent(1 / d)}.",
        f"The eigenvalues of M say how strongly each direction of the {d} pixels counts. The "
        f"Euclidean distance weighs all alike. The learned one puts half of its weight on "
        f"{half} directions and none on {d - len(eigenvalues)}.",
    )


def _planes(study: Study) -> str:
    split = study.split
    pca = PCA(2, svd_solver="full").fit(split.X_train)
    plane = study.learner.metric_.reduce(2)
    figures = []
    for name, embed in (("Before: PCA", pca.transform), ("After: metric.reduce(2)", plane.embed)):
        test = embed(split.X_test)
        error = text.percent(_plane_error(split, embed(split.X_train), test))
        figures.append(
            _figure(
                pictures.plane_picture(test, split.y_test),
                f"Scatter plot of the test images in two dimensions, colored by digit. {name}.",
                f"{name}. {N_NEIGHBORS}-NN error with these two dimensions alone: {error}.",
            )
        )
    return "\n".join(figures)


def _plane_error(split: Split, train: pictures.Floats, test: pictures.Floats) -> float:
    classifier = KNNClassifier(n_neighbors=N_NEIGHBORS).fit(train, split.y_train)
    return 1.0 - float(classifier.score(test, split.y_test))


def _queries(study: Study) -> str:
    found = disagreements(study)
    parts = [
        f"<p>One of the stores with {PER_CLASS} images of each digit. On {found.gained} of the "
        f"{len(study.split.y_test)} test images only the learned metric finds a nearest neighbor "
        f"of the right digit, on {found.lost} only the Euclidean one. These are the first of "
        "either kind; neighbors of another digit have a red, dashed frame.</p>"
    ]
    kinds = (
        ("Only learned is right", found.shown_gained),
        ("Only Euclidean is right", found.shown_lost),
    )
    for title, queries in kinds:
        if queries:
            shown = "\n".join(_query(study.split, query) for query in queries)
            parts.append(f'<h3>{title}</h3>\n<div class="queries">{shown}</div>')
    return "\n".join(parts)


def _query(split: Split, query: Query) -> str:
    digit = split.y_test[query.row]
    image = pictures.digit_picture(split.X_test[query.row])
    lines = [f'<img class="asked" src="{image}" alt="Test image of a {digit}"><div>']
    for name, rows in (("Euclidean", query.before), ("learned", query.after)):
        lines.append(f'<div class="line"><span>{name}</span>')
        for row in rows:
            label = split.y_train[row]
            wrong = label != digit
            lines.append(
                f"<img{' class=wrong' if wrong else ''} "
                f'src="{pictures.digit_picture(split.X_train[row])}" '
                f'alt="{label}{", wrong" if wrong else ""}">'
            )
        lines.append("</div>")
    return f'<div class="query">{"".join(lines)}</div></div>'
