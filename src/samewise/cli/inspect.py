"""samewise inspect: what is in a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from samewise.cli.console import Answer, number, percent, say, show_table
from samewise.cli.options import ModelFile, command, open_model
from samewise.forms.inspection import inspect_form


@command()
def inspect(
    model_file: ModelFile,
    top: Annotated[int, typer.Option(min=1, help="How many features and pairs to show.")] = 10,
) -> Answer:
    """Show the contents of a model: weights, spectrum, threshold, and how it was trained.

    Example: samewise inspect wine.sw
    """
    model = open_model(model_file)
    found = inspect_form(model.form, model.feature_names, top=top)
    content: dict[str, Any] = {
        "form": repr(model.form),
        "learner": model.learner,
        "params": model.params,
        "kept": model.kept,
        "label": model.label,
        "features": model.form.n_features_in,
        "standardized": model.mean is not None,
        "rows_learned_from": len(model.seen),
        "threshold": model.threshold,
        "rank": found.rank,
        "directions_for_90_percent": found.n_for_90,
        "spectrum": found.spectrum.tolist(),
        "top_features": [{"name": n, "weight": w} for n, w in found.features],
        "top_pairs": [{"names": [a, b], "weight": w} for a, b, w in found.feature_pairs],
        "measured": model.measured,
        "versions": model.versions,
    }
    return Answer(content, lambda: _show(content, top))


def _show(content: dict[str, Any], top: int) -> None:
    say(content["form"])
    if content["learner"]:
        params = ", ".join(f"{k}={v}" for k, v in content["params"].items())
        say(
            f"learned with {content['learner']}{f' ({params})' if params else ''} from "
            f"{content['rows_learned_from']:,} different rows of {content['features']:,} features"
            f"{', standardized' if content['standardized'] else ''}"
        )
    if content["kept"]:
        say(content["kept"])
    if content["measured"]:
        errors = ", ".join(f"{n} {percent(e)}" for n, e in content["measured"]["errors"].items())
        say(f"3-NN error on {content['measured']['rows']:,} rows held out: {errors}")
    if content["threshold"] is not None:
        say(f"two rows are the same if their closeness is at least {content['threshold']:.6g}")
    spectrum = content["spectrum"]
    first = ", ".join(number(v) for v in spectrum[:top]) + (", …" if len(spectrum) > top else "")
    say(f"spectrum: {first}")
    say(
        f"rank {content['rank']}; {content['directions_for_90_percent']} directions hold 90 % of it"
    )
    if content["top_features"]:
        of = " (of standardized values)" if content["standardized"] else ""
        show_table(
            ["feature", "weight"],
            [[f["name"], number(f["weight"])] for f in content["top_features"]],
            f"Most weighted features{of}",
        )
    if content["top_pairs"]:
        show_table(
            ["pair of features", "weight"],
            [[" × ".join(p["names"]), number(p["weight"])] for p in content["top_pairs"]],
            "Most weighted pairs",
        )
