"""What `lmnn_table1` has measured so far, kept in files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_VALUES = ("split", "part", "name", "value")
_TIMES = ("split", "part", "name", "wall", "cpu")


class Result(NamedTuple):
    """Values, and wall and CPU seconds, by name."""

    values: dict[str, Any]
    seconds: dict[str, tuple[float, float]]


class Records:
    """The files `records/<set>.csv` and `times/<set>.csv` of a folder."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def keep(self, name: str, split: int, part: str, result: Result) -> None:
        """Append a result. Values come last, and in one write: with them it is done."""
        times = [
            (split, part, key, f"{w:.3f}", f"{c:.3f}") for key, (w, c) in result.seconds.items()
        ]
        values = [(split, part, key, _text(value)) for key, value in result.values.items()]
        self._append(self._path("times", name), _TIMES, times)
        self._append(self._path("records", name), _VALUES, values)

    def done(self, name: str) -> set[tuple[int, str]]:
        """The splits and parts that are recorded."""
        return {(int(row["split"]), row["part"]) for row in _read(self._path("records", name))}

    def values(self, name: str) -> dict[str, list[Any]]:
        """For each name the values of all splits, in order."""
        out: dict[str, list[Any]] = {}
        for row in sorted(_read(self._path("records", name)), key=lambda row: int(row["split"])):
            out.setdefault(row["name"], []).append(_value(row["value"]))
        return out

    def seconds(self, name: str) -> dict[str, np.ndarray]:
        """For each name (wall, cpu), the mean over the splits."""
        out: dict[str, list[tuple[float, float]]] = {}
        for row in _read(self._path("times", name)):
            out.setdefault(row["name"], []).append((float(row["wall"]), float(row["cpu"])))
        return {key: np.mean(rows, axis=0) for key, rows in out.items()}

    def forget(self, name: str) -> None:
        """Remove what is known about a set."""
        for kind in ("records", "times"):
            self._path(kind, name).unlink(missing_ok=True)

    def sort(self, name: str) -> None:
        """Rows by split and part, in whatever order they were finished."""
        for kind, header in (("records", _VALUES), ("times", _TIMES)):
            path = self._path(kind, name)
            rows = _read(path)
            if not rows:
                continue
            # A time without its value is of a run that was broken off.
            done = self.done(name)
            rows = [row for row in rows if (int(row["split"]), row["part"]) in done]
            latest = {(int(row["split"]), row["part"], row["name"]): row for row in rows}
            keys = sorted(latest, key=lambda key: key[:2])
            new = path.with_suffix(".new")
            self._append(new, header, [tuple(latest[key].values()) for key in keys])
            new.replace(path)

    def _path(self, kind: str, name: str) -> Path:
        return self.out / kind / f"{name}.csv"

    @staticmethod
    def _append(path: Path, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = rows if path.exists() else [header, *rows]
        text = "".join(",".join(map(str, line)) + "\n" for line in lines)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _text(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
