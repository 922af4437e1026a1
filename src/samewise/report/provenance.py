"""How a report was made."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from samewise.forms import Form
from samewise.report.page import Html, bullets, code, folded, paragraph, table
from samewise.report.report_options import ReportOptions


def provenance(named: Mapping[str, Any], options: ReportOptions, seconds: float) -> list[Html]:
    """How it was measured, parameters, versions, time, and the command."""
    parts = [
        bullets(
            [
                f"k-NN: the majority of the {options.n_neighbors} nearest training examples; SkNN: "
                "the class with the largest closeness to its own nearest members.",
                "Retrieval: every test example is a query to the training examples, and those of "
                "its class are relevant.",
                f"Verification: up to {options.n_pairs:,} pairs of test examples, half of them of "
                "one class; the threshold is the best one for as many pairs of training examples, "
                "and the error is the mean of the two error rates.",
                "The Euclidean distance and the cosine are measured on the same numbers as what "
                "was learned.",
            ]
        )
    ]
    if options.command is not None:
        parts += [paragraph("Made by this command:"), code(options.command)]
    for name, one in named.items():
        chosen = {} if isinstance(one, Form) else one.get_params()
        if chosen:
            title = f"Parameters of {name} ({type(one).__name__})"
            parts.append(_parameters(title, title, dict(sorted(chosen.items()))))
    if options.parameters:
        caption = "What the report was given"
        parts.append(_parameters("Parameters", caption, options.parameters))
    versions = [["Python", platform.python_version()]]
    versions += [[name, version(name)] for name in _PACKAGES]
    parts.append(folded("Versions", table(["package", "version"], versions, caption="Versions")))
    parts.append(
        paragraph(
            f"Measuring and drawing took {seconds:.1f} s on {platform.machine()}, "
            f"{platform.system()}."
        )
    )
    return parts


_PACKAGES = ("samewise", "numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def version(package: str) -> str:
    """The version of a package that is installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _parameters(title: str, caption: str, chosen: Mapping[str, Any]) -> Html:
    rows = [[str(key), _short(value)] for key, value in chosen.items()]
    return folded(title, table(["parameter", "value"], rows, caption=caption))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
