"""samewise compare: several learners on the same data."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from samewise.cli.errors import one_sentence
from samewise.cli.options import (
    Data,
    Debug,
    Drop,
    Features,
    Id,
    Json,
    Label,
    Seed,
    VectorField,
    check_neighbors,
    listed,
)
from samewise.cli.shown import percent, print_json, say, show_table, working
from samewise.cli.tables import check_classes, read_table
from samewise.model import standardized
from samewise.protocols import Compared, compare, hold_out, standardization

__all__ = ["compare_learners"]


def compare_learners(
    data: Data,
    label: Label = None,
    learners: Annotated[
        str, typer.Option(help="Names of learners, separated by commas.")
    ] = "lda,lmnn,gcosla",
    part: Annotated[
        float, typer.Option("--test-part", min=0.01, max=0.9, help="Part of the rows to judge by.")
    ] = 0.3,
    neighbors: Annotated[int, typer.Option("-k", min=1, help="Neighbors that decide.")] = 3,
    scale: Annotated[
        bool,
        typer.Option(
            help="Standardize dense columns whose spreads differ more than tenfold, unless 3-NN is "
            "clearly better without."
        ),
    ] = True,
    seed: Seed = 0,
    features: Features = None,
    drop: Drop = None,
    id_column: Id = None,
    vector_field: VectorField = "vector",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare learners by k-NN error on a test part, with significance, time and memory.

    Each learner runs in a process of its own. A data set with a standard split is judged by its
    test part. After Ctrl-C, what is known is shown.

    Example: samewise compare wine.csv --label class --learners lmnn,nca,sila
    """
    with one_sentence(debug, as_json, "interrupted"):
        table = read_table(
            data,
            label=label,
            features=listed(features),
            drop=listed(drop),
            id_column=id_column,
            vector_field=vector_field,
        )
        y = check_classes(table)
        held = hold_out(y, part, seed) if table.train is None else ~table.train
        check_neighbors(neighbors, int((~held).sum()))
        scaling = standardization(table.X[~held], y[~held]) if scale else None
        X = table.X if scaling is None else standardized(table.X, *scaling)
        names = listed(learners)
        found: list[Compared] = []
        interrupted = False
        runs = compare(
            names, X[~held], y[~held], X[held], y[held], n_neighbors=neighbors, random_state=seed
        )
        try:
            with working("euclidean") as show:
                for line in runs:
                    found.append(line)
                    done = len(found)
                    show(f"{done} done, last {line.name}: {percent(line.error)}")
        except KeyboardInterrupt:
            interrupted = True
        content = {
            "learned_from": int((~held).sum()),
            "judged_by": int(held.sum()),
            "standardized": scaling is not None,
            "compared": [_entry(line) for line in found],
        }
        if as_json:
            print_json(content)
        elif found:
            _show(content, neighbors)
        if interrupted:
            raise KeyboardInterrupt


def _entry(line: Compared) -> dict[str, Any]:
    entry = {
        "learner": line.name,
        "error": line.error,
        "against": line.marks,
        "seconds": line.seconds,
        "peak_memory_bytes": line.memory,
    }
    return entry | ({"refused": line.refused} if line.refused else {})


def _show(content: dict[str, Any], neighbors: int) -> None:
    standard = ", standardized" if content["standardized"] else ""
    title = (
        f"{neighbors}-NN error on {content['judged_by']:,} rows; learned from "
        f"{content['learned_from']:,}{standard}"
    )
    rows = []
    for line in content["compared"]:
        marks = line["against"]
        seconds, memory = line["seconds"], line["peak_memory_bytes"]
        rows.append(
            [
                line["learner"],
                percent(line["error"]) or "refused",
                marks.get("euclidean", ""),
                marks.get("cosine", ""),
                "" if math.isnan(seconds) else f"{seconds:.2f}",
                "" if memory is None else f"{memory / 2**20:,.0f}",
            ]
        )
    show_table(["learner", "error", "vs euclidean", "vs cosine", "seconds", "MiB"], rows, title)
    say(
        "≫ and > : better by the s-test at 1 % and 5 %; ≪ and < : worse; not adjusted for the "
        "number of learners. Seconds are those of learning; MiB the most its process held at once, "
        "with data and libraries."
    )
    for line in content["compared"]:
        if "refused" in line:
            say(f"{line['learner']} refused: {line['refused']}")
    say(_best(content["compared"]))


def _best(lines: list[dict[str, Any]]) -> str:
    learned = [n for n in lines if n["learner"] not in ("euclidean", "cosine")]
    plain = [n for n in lines if n["learner"] in ("euclidean", "cosine")]
    sound = [n for n in learned if not math.isnan(n["error"])]
    if not sound or not plain:
        return "There is nothing to compare yet."
    best, base = min(sound, key=lambda n: n["error"]), min(plain, key=lambda n: n["error"])
    mark = best["against"].get(base["learner"], "=")
    if mark in ("≫", ">"):
        return f"Best: {best['learner']}, better than {base['learner']} ({mark})."
    if best["error"] < base["error"]:
        return (
            f"Best: {best['learner']}, but the gain over {base['learner']} may be chance ({mark})."
        )
    return f"No learner errs less than {base['learner']} here ({best['learner']} {mark})."
