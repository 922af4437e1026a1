"""Pieces of a page that stands on its own: no other file, no script, no network."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, NewType

import numpy as np

from samewise._typing import Array
from samewise.plots._axes import require_matplotlib

Html = NewType("Html", str)
"""Text with markup. What makes it escapes what it is given."""

_INK = "#010203"
"""Stands for the color of the page's text, which is another one in the dark."""


@dataclass(frozen=True)
class Section:
    """A heading and what is below it.

    Examples
    --------
    >>> Section("Results", [paragraph("All is well.")]).title
    'Results'
    """

    title: str
    parts: Sequence[Html]


def escaped(text: str) -> str:
    """Plain text for a page; numbers are not parted from percent signs and from their p.

    Examples
    --------
    >>> escaped("a < 5 %")
    'a &lt; 5&nbsp;%'
    """
    return re.sub(r"\bp (=|&lt;) (?=\d)", r"p&nbsp;\1&nbsp;", escape(text)).replace(" %", "&nbsp;%")


def paragraph(text: str) -> Html:
    """A paragraph of plain text.

    Examples
    --------
    >>> paragraph("1 < 2")
    '<p>1 &lt; 2</p>'
    """
    return Html(f"<p>{escaped(text)}</p>")


def bullets(sentences: Iterable[str]) -> Html:
    """A list of plain sentences.

    Examples
    --------
    >>> bullets(["one", "two"])
    '<ul><li>one</li><li>two</li></ul>'
    """
    return Html("<ul>" + "".join(f"<li>{escaped(s)}</li>" for s in sentences) + "</ul>")


def code(text: str) -> Html:
    """Text to copy, as it is.

    Examples
    --------
    >>> code("a < b")
    '<pre tabindex="0"><code>a &lt; b</code></pre>'
    """
    return Html(f'<pre tabindex="0"><code>{escaped(text)}</code></pre>')


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str,
    best: Callable[[int, int], bool] = lambda row, column: False,
) -> Html:
    """A table whose first column names the rows. It scrolls by itself where it is too wide.

    Parameters
    ----------
    columns : sequence of str
    rows : iterable of sequences of str
    caption : str
        What the table shows.
    best : callable (row, column) -> bool
        Which cells are bold.

    Examples
    --------
    >>> print(table(["metric", "error"], [["cosine", "1 %"]], caption="Errors"))
    <figure><div class="scroll" role="region" aria-label="Errors" tabindex="0"><table>
    <thead><tr><th scope="col">metric</th><th scope="col">error</th></tr></thead>
    <tbody>
    <tr><th scope="row">cosine</th><td>1&nbsp;%</td></tr>
    </tbody></table></div><figcaption>Errors</figcaption></figure>
    """
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in columns)
    lines = []
    for r, (name, *cells) in enumerate(rows):
        line = f'<th scope="row">{escaped(name)}</th>'
        for c, cell in enumerate(cells, start=1):
            text = escaped(cell)
            line += f"<td>{f'<strong>{text}</strong>' if best(r, c) else text}</td>"
        lines.append(f"<tr>{line}</tr>\n")
    label = escaped(caption)
    return Html(
        f'<figure><div class="scroll" role="region" aria-label="{label}" tabindex="0"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody></table></div>"
        f"<figcaption>{label}</figcaption></figure>"
    )


def picture(
    draw: Callable[..., object], *, alt: str, caption: str, size: tuple[float, float] = (5.2, 3.4)
) -> Html:
    """What `draw` draws, as part of the page.

    The lines and letters of the axes have the color of the page's text, in the light and in the
    dark.

    Parameters
    ----------
    draw : callable
        Called with ``ax=``, matplotlib Axes: one of `samewise.plots` with its other arguments
        bound.
    alt : str
        What the picture shows, for those who do not see it.
    caption : str
    size : (float, float)
        Width and height in inches.

    Examples
    --------
    >>> html = picture(lambda ax: ax.plot([1, 2]), alt="A rising line.", caption="It rises.")
    >>> html.startswith("<figure><svg"), "aria-label=\\"A rising line.\\"" in html
    (True, True)
    """
    svg = _inline(_svg(draw, size), alt + caption)
    label = f'<svg role="img" aria-label="{escaped(alt)}" '
    return Html(
        f"<figure>{svg.replace('<svg ', label, 1)}"
        f"<figcaption>{escaped(caption)}</figcaption></figure>"
    )


def named_marks(figure: Html, names: Mapping[str, Sequence[str]]) -> Html:
    """A picture whose marks show their names when the pointer is on them, without a script.

    Parameters
    ----------
    figure : Html
        What `picture` made.
    names : dict of str to sequence of str
        For the `gid` of each scatter, the names of its marks in their order.

    Examples
    --------
    >>> html = picture(lambda ax: ax.scatter([1, 2], [3, 4], gid="a"), alt="Dots.", caption="Two.")
    >>> "<title>row 7</title>" in named_marks(html, {"a": ["row 5", "row 7"]})
    True
    """
    made = figure.replace("<figure>", '<figure class="map">', 1)
    for gid, of_marks in names.items():
        begin = made.index(f'-{gid}">')
        end = made.index("</g>", begin)
        made = made[:begin] + _with_titles(made[begin:end], of_marks) + made[end:]
    return Html(made)


def _with_titles(marks: str, names: Sequence[str]) -> str:
    each = iter(names)
    return re.sub(
        r"<use ([^>]*)/>",
        lambda found: f"<use {found[1]}><title>{escaped(next(each))}</title></use>",
        marks,
    )


def side_by_side(parts: Iterable[Html]) -> Html:
    """Pictures next to each other where there is room, below each other where there is not.

    Examples
    --------
    >>> side_by_side([paragraph("a"), paragraph("b")])
    '<div class="side"><p>a</p><p>b</p></div>'
    """
    return Html(f'<div class="side">{"".join(parts)}</div>')


def folded(summary: str, part: Html) -> Html:
    """Something that is shown when its summary is clicked.

    Examples
    --------
    >>> folded("more", paragraph("x"))
    '<details><summary>more</summary><p>x</p></details>'
    """
    return Html(f"<details><summary>{escaped(summary)}</summary>{part}</details>")


def image(pixels: Array, *, alt: str, kind: str = "") -> Html:
    """One small image with values from 0 (dark) to 1 (light), of shape (h, w) or (h, w, 3).

    Examples
    --------
    >>> import numpy as np
    >>> image(np.eye(2), alt="a line")[:32]
    '<img src="data:image/png;base64,'
    """
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    plain: dict[str, Any] = {"Software": None}
    shown = np.clip(pixels, 0, 1).astype(np.float64)
    imsave(buffer, shown, format="png", cmap="gray", vmin=0, vmax=1, metadata=plain)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    of_kind = f' class="{escaped(kind)}"' if kind else ""
    return Html(f'<img src="data:image/png;base64,{data}" alt="{escaped(alt)}"{of_kind}>')


def page(title: str, lead: Sequence[Html], sections: Sequence[Section], footer: str) -> str:
    """The whole page.

    Examples
    --------
    >>> page("A & B", [paragraph("Hello.")], [], "").splitlines()[0]
    '<!doctype html>'
    """
    links = "".join(
        f'<a href="#part-{n}">{escaped(section.title)}</a>' for n, section in enumerate(sections)
    )
    body = "\n".join(
        f'<section aria-labelledby="part-{n}">\n<h2 id="part-{n}">{escaped(section.title)}</h2>\n'
        + "\n".join(section.parts)
        + "\n</section>"
        for n, section in enumerate(sections)
    )
    return Template(_resource("page.html")).substitute(
        title=escaped(title),
        style=_resource("page.css"),
        lead="".join(lead),
        links=links,
        body=body,
        footer=escaped(footer),
    )


def _resource(name: str) -> str:
    return files("samewise.report").joinpath(name).read_text(encoding="utf-8")


def _svg(draw: Callable[..., object], size: tuple[float, float]) -> str:
    require_matplotlib("A report")
    import matplotlib
    from matplotlib.figure import Figure

    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    inks: dict[str, Any] = dict.fromkeys(names, _INK)
    settings: Any = {**inks, "svg.fonttype": "path", "svg.hashsalt": "samewise", "font.size": 10}
    buffer = io.StringIO()
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.subplots()
        ax.set_facecolor("none")
        draw(ax=ax)
        dates: dict[str, Any] = {"Date": None}
        figure.savefig(buffer, format="svg", transparent=True, metadata=dates)
    return buffer.getvalue()


def _inline(svg: str, about: str) -> str:
    """An SVG file as an element of a page, whose names do not meet those of other pictures."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg ") :], flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace(_INK, "currentColor")
    own = "p" + hashlib.sha256((about + svg).encode()).hexdigest()[:8]
    svg = re.sub(r' id="([^"]+)"', rf' id="{own}-\1"', svg)
    svg = re.sub(r'xlink:href="#', f'xlink:href="#{own}-', svg)
    return re.sub(r"url\(#", f"url(#{own}-", svg).strip()
