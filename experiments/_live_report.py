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
    drift: Any,
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
        "banking77, test questions against stored training questions; means over seeds, in "
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


def _drift(course: Any) -> str:
    """The share of new preferences that are right, by the number of relevant events."""
    right = course.drift
    if not right:
        return "No relevant events."
    ends = [n for n in (100, 200, 300, 400, 600, 800, 1000) if n < len(right) + 100]
    shares = [100 * np.mean(right[max(n - 100, 0) : n]) for n in ends]
    table = [{"relevant lists": n, "right": float(s)} for n, s in zip(ends, shares, strict=True)]
    shown = 100 * np.mean(course.drift_shown[-100:])
    return (
        "After all lists so far, everything about a tenth of the intents is reversed. Share of the "
        "new preferences that the live form has right before it learns them, in percent, in the "
        "hundred lists up to each number of lists about these intents: pairs of items of the "
        f"start's 100 best.\n\n{markdown(table, 0)}\n\nOf the pairs in the last hundred shown "
        f"lists that have both kinds it has {shown:.0f} right. The live form chose these lists: "
        "where it is right, nothing disliked is shown and the list has no pairs."
    )
