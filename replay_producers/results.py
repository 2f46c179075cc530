"""results.json: every run as soon as it ends, whole at any moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from replay_producers.runs import Result, Run
from streamlearn.disk import make_directory, write_file
from streamlearn.errors import SettingsError


class Results:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "results.json"
        self.entries: list[Result] = _read(self.path)

    def add(self, result: Result) -> None:
        self.entries.append(result)
        make_directory(self.path.parent)
        write_file(self.path, [json.dumps(self.entries, indent=1).encode()])

    def left(self, runs: Sequence[Run]) -> list[Run]:
        """Those that have no result yet. Results of other settings under the same name are not mixed with new ones."""
        there = {(e["dataset"], e["method"], e["buffer"], e["seed"], e["through"]): e["setup"] for e in self.entries}
        other = [run.described() for run in runs if there.get(run.identity, run.setup()) != run.setup()]
        if other:
            raise SettingsError(
                [f"{self.path} has {other[0]} (of {len(other)}) from other settings, such as another --limit"],
                "choose another --out, or move the old results away",
            )
        return [run for run in runs if run.identity not in there]


def _read(path: Path) -> list[Result]:
    try:
        entries = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise SettingsError([f"{path} cannot be read: {error}"], "move it away to begin anew") from error
    needed = {"dataset", "method", "buffer", "seed", "through", "setup", "accuracy"}
    if not isinstance(entries, list) or not all(isinstance(one, dict) and needed <= one.keys() for one in entries):
        raise SettingsError([f"{path} does not hold results of this program"], "choose another --out")
    return entries
