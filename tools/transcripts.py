"""Run the commands of docs/command_line.md anew: `python -m tools.transcripts [--write]`.

Every line that starts with "$ " in a block of text is run, one after the other, in one empty
folder, and what it prints takes the place of what stands below it. Without --write the page stays
as it is, and the differences are printed; seconds and MiB do not count as one.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command_line.md"
_BLOCK = re.compile(r"(?<=```text\n).*?(?=```)", re.DOTALL)
# Times and memory: "in 0.4 s.", and the last two columns of `compare`.
_VARYING = re.compile(r"in [\d.]+ s\b|[\d.]+ │ +\d+ │$", re.MULTILINE)


def rerun(page: str, folder: Path) -> str:
    """The page, with what its commands print now."""
    bin = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}

    # A set that comes with scikit-learn is exported as everybody gets it.
    shipped = {name: value for name, value in environment.items() if name != "SAMEWISE_DATA"}

    def answer(command: str) -> str:
        print(command, file=sys.stderr, flush=True)
        ran = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=shipped if " export " in command else environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        # How far it is depends on the machine.
        said = re.sub(r"^progress: .*\n", "", ran.stdout, flags=re.MULTILINE)
        return f"$ {command}\n{said.rstrip()}\n"

    def block(found: re.Match[str]) -> str:
        commands = [line[2:] for line in found[0].splitlines() if line.startswith("$ ")]
        return "\n".join(map(answer, commands))

    return _BLOCK.sub(block, page)


def same(old: str, new: str) -> bool:
    """Whether two pages differ in times and memory at most."""
    return _VARYING.sub("", old) == _VARYING.sub("", new)


def main(arguments: list[str]) -> int:
    """Run the commands; the exit code is 1 if the page differs from what they print."""
    old = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        new = rerun(old, Path(folder))
    if "--write" in arguments:
        PAGE.write_text(new, encoding="utf-8")
        return 0
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    sys.stdout.writelines(difflib.unified_diff(before, after, "the page", "now"))
    return 0 if same(old, new) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
