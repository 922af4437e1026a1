"""Formulas as MathML, which browsers set without a script and screen readers read aloud."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def mathml(latex: str, display: str = "block") -> str:
    """The MathML element of a formula."""
    made = convert(latex, display=display)
    # Commands and alignments that the converter does not know, it leaves as text.
    if "\\" in made or "<mi>&</mi>" in made:
        raise ValueError(f"A part of this formula is not known: {latex}.")
    return made


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    # A long formula scrolls on a phone.
    writer.body.append(f'<div class="formula" tabindex="0">{mathml(node.astext())}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
