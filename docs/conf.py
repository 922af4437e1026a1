"""How the documentation is built: `make docs`.

Docstrings are plain text with Unicode formulas. Two things make reStructuredText of them before
napoleon reads their sections: formulas, which are indented, become literal blocks, and characters
that mean something in reStructuredText but not in a formula (M*, |x|, metric_) are escaped.
"""

from __future__ import annotations

import re
from typing import Any

import samewise
from samewise.catalog import LEARNERS

project = "samewise"
author = "the samewise authors"
version = release = samewise.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docs.mathml",
]
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "backreferences_dir": None,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
}
root_doc = "index"
exclude_patterns = ["README.md", "gallery"]
# Dashes only: quotes in docstrings are code.
smartquotes_action = "D"
html_theme = "furo"
html_show_copyright = False
html_title = f"samewise {version}"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_math_renderer = "mathml"
html_copy_source = False
# What is copied is code: no prompts, and no output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_show_sphinx = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

default_role = "py:obj"
add_module_names = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
autosummary_generate = False
napoleon_google_docstring = False
# Types are words ("array of shape (n, d)"), which must not be looked up as names.
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

# What stays as it is, and what must be escaped where it is not part of that.
_MARKUP = re.compile(r"``[^`]+``|`[^`]+`|(?:(?<=\s)|^)\*(?=\S)[^*]+?\*|[*|]|(?<=\w)_(?!\w)")
# A sentence that is only a symbol ("k. In a class …") would begin a list.
_ENUMERATOR = re.compile(r"^( *)(\w\.\s)", re.MULTILINE)


def _escaped(text: str) -> str:
    text = _MARKUP.sub(lambda m: m[0] if len(m[0]) > 1 else "\\" + m[0], text)
    return _ENUMERATOR.sub(r"\1\\\2", text)


def plain_to_rst(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make reStructuredText of a docstring, in place."""
    out: list[str] = []
    in_fields = False
    for block in re.split(r"\n\s*\n", "\n".join(lines)):
        first, *rest = block.split("\n")
        if rest and re.fullmatch(r"-{3,}", rest[0].strip()):
            in_fields = first in ("Parameters", "Attributes", "Returns", "Yields", "Raises")
            out += [first, rest.pop(0)]
            first, rest = (rest[0], rest[1:]) if rest else ("", [])
        block = "\n".join([first, *rest])
        if first.lstrip().startswith(">>>"):
            out += [*block.split("\n"), ""]
        elif in_fields:
            # Names of fields, which stand at the margin, are escaped by napoleon.
            out += [_escaped(x) if x.startswith(" ") else x for x in block.split("\n")] + [""]
        elif first.startswith("    "):
            out += ["::", "", *block.split("\n"), ""]
        else:
            out += [*_escaped(block).split("\n"), ""]
    lines[:] = out


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn brings along, and attributes, which have their own section."""
    function = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    module = getattr(function, "__module__", None) or ""
    if what == "class" and (name.endswith("_") or not module.startswith("samewise")):
        return True
    return None


def with_learners(text: str) -> str:
    """A page in which "@learners FAMILY [SUPERVISION]" stands for the learners of the catalog."""

    def listed(match: re.Match[str]) -> str:
        found = [
            entry.name
            for entry in LEARNERS
            if entry.family == match[2] and (match[3] is None or entry.learns_from[0] == match[3])
        ]
        return "\n".join(match[1] + name for name in found)

    return re.sub(r"^( *)@learners (\w+)(?: (\w+))?$", listed, text, flags=re.MULTILINE)


def fill_in_learners(app: Any, name: str, source: list[str]) -> None:
    """Fill in a page's learners, in place."""
    source[0] = with_learners(source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", plain_to_rst, priority=400)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("source-read", fill_in_learners)
