"""The tables of the live adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments._common import markdown, write_csv

NAMES = ("P@1", "P@10", "mAP")


def write(
    out: Path,
    *,
    choice: list[dict[str, Any]],
    start: Any,
    good: dict[tuple[float, float | None, int], Any],
    sabotage: dict[Any, Any],
    drift: list[Any],
    promoted: dict[str, int],
    oasis: dict[int, Any],
) -> None:
    """CSV files of all values, and summary.md with the means."""
    rows = [
        {
            "noise": noise,
            "guard": "none" if guard is None else guard,
            "seed": seed,
            "form": form,
            "lists": n,
            **dict(zip(NAMES, map(float, values), strict=True)),
        }
        for (noise, guard, seed), course in good.items()
        for form in ("live", "served")
        for n, values in getattr(course, form).items()
    ]
    write_csv(out / "courses.csv", rows)
    parts = ["# Live adapter", _intro(start), markdown(_means(rows, start, oasis), 1)]
    parts += ["## First promotions", markdown(_promotions(good), 0)]
    parts += ["## Sabotage", markdown(_sabotage(sabotage, start), 1)]
    write_csv(out / "choice.csv", choice)
    parts += ["## Choice on held-out training questions", markdown(choice, 2)]
    parts += ["## Drift", _drift(drift), "## Coins", markdown([promoted], 0)]
    (out / "summary.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _intro(start: Any) -> str:
    values = " / ".join(f"{value:.1f}" for value in start)
    return (
        "banking77, test questions against stored training questions; means over ten seeds, in "
        f"percent. The start has {values} (P@1 / P@10 / mAP). Made by `python -m experiments live`."
    )


def _means(rows: list[dict[str, Any]], start: Any, oasis: dict[int, Any]) -> list[dict[str, Any]]:
    table = []
    keys = dict.fromkeys((r["noise"], r["guard"], r["form"], r["lists"]) for r in rows)
    for noise, guard, form, n in keys:
        mine = [
            [r[name] for name in NAMES]
            for r in rows
            if (r["noise"], r["guard"], r["form"], r["lists"]) == (noise, guard, form, n)
        ]
        mean = np.mean(mine, axis=0)
        which = f"{form}, {'no guard' if guard == 'none' else 'guarded'}"
        table.append(
            {
                "form": which,
                "noise": f"{noise:.0%}",
                "lists": n,
                **dict(zip(NAMES, map(float, mean), strict=True)),
                "least P@1": float(np.min(mine, axis=0)[0]),
                "P@10 gain": float(mean[1] - start[1]),
            }
        )
    for n, values in oasis.items():
        table.append(
            {
                "form": "OASIS, as many triplets",
                "noise": "0%",
                "lists": n,
                **dict(zip(NAMES, map(float, values), strict=True)),
                "least P@1": float(values[0]),
                "P@10 gain": float(values[1] - start[1]),
            }
        )
    return table


def _promotions(good: dict[tuple[float, float | None, int], Any]) -> list[dict[str, Any]]:
    table = []
    for noise in dict.fromkeys(key[0] for key in good):
        for place in ("rest", "first"):
            firsts = [
                min((c["event"] for c in course.changes if c["place"] == place), default=None)
                for (p, guard, _), course in good.items()
                if p == noise and guard is not None
            ]
            shown = ", ".join("none" if event is None else str(event) for event in firsts)
            table.append({"noise": f"{noise:.0%}", "place": place, "after lists": shown})
    return table


def _sabotage(sabotage: dict[Any, Any], start: Any) -> list[dict[str, Any]]:
    table = []
    for users, course in sabotage.items():
        served, live = (list(part.values())[-1] for part in (course.served, course.live))
        changes = ", ".join(f"{c['why']} {c['place']} at {c['event']}" for c in course.changes)
        table.append(
            {
                "answers": users.kind + (f" after {users.since}" if users.since else ""),
                **{f"served {n}": float(v) for n, v in zip(NAMES, served, strict=True)},
                **{f"live {n}": float(v) for n, v in zip(NAMES, live, strict=True)},
                "changes": changes or "none",
            }
        )
    return table


def _drift(courses: list[Any]) -> str:
    """What is right of new preferences, by the number of relevant lists."""
    table = []
    for n in (100, 200, 300, 400, 600, 800, 1000):
        row: dict[str, Any] = {"relevant lists": n}
        for name, course in zip(("the live form", "the start"), courses, strict=True):
            for what, values in (("pairs", course.drift), ("top 10", course.drift_top)):
                part = values[max(n - 100, 0) : n] if n < len(values) + 100 else []
                row[f"{what}, shown by {name}"] = 100 * float(np.mean(part)) if part else None
        table.append(row)
    return (
        "After all lists so far, everything about a tenth of the intents is reversed. What the "
        "live form has right of the new preferences before it learns them, in percent, in the "
        "hundred lists up to each number of lists about these intents: of the pairs of a liked and "
        "a disliked item among the start's 100 best, the share in the right order; and the share "
        "of its own ten best that is liked. Where the live form chooses the lists, it shows little "
        "that is disliked once it is right, and learns no more about the order further down; the "
        f"other lists are those of the start, whatever was learned.\n\n{markdown(table, 0)}"
    )
