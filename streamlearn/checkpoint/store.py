"""All checkpoints of one state directory: save, load, look, go back.

A save writes new files only, the manifest last, and every file is on the disk before the next one is begun. So at any
moment the folder holds the old state or the new one, whole. What an interrupted save left is swept by the next.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlearn import disk
from streamlearn.checkpoint import arrays as array_file
from streamlearn.checkpoint.damage import Damaged
from streamlearn.checkpoint.folder import CheckpointInfo, Folder
from streamlearn.checkpoint.index import RowIndex, save_rows
from streamlearn.checkpoint.manifest import Manifest, StoredArrays, StoredIndex, encode, libraries
from streamlearn.checkpoint.reader import FileCheck, Reader
from streamlearn.checkpoint.retention import Retention
from streamlearn.checkpoint.tree import Rows, Tree, flatten, state_sha256
from streamlearn.errors import SettingsError, StateCorrupt, StateError


@dataclass(frozen=True)
class Skipped:
    """A checkpoint that is there but cannot be used."""

    number: int
    reason: str


@dataclass(frozen=True)
class Loaded:
    info: CheckpointInfo
    tree: Tree
    skipped: Sequence[Skipped]  # newer ones that are damaged, newest first


class CheckpointStore:
    """Only the owner of the state directory's lock may write or roll back; anybody may read."""

    def __init__(self, state_dir: Path, retention: Retention | None = None) -> None:
        self.folder = Folder(state_dir)
        self.retention = retention or Retention()
        self._saved: dict[str, RowIndex] = {}  # where the rows of the last checkpoint written or loaded are
        self._damaged: set[int] = set()
        self._busy = threading.Lock()

    def write(self, tree: Tree, *, examples_seen: int, position: Any = None) -> CheckpointInfo:
        """Saves a state; when it returns, that state survives a power cut.

        Arrays must not change meanwhile (hand over copies); Rows are released when it ends, well or not. `position` is
        any plain value. Raises OSError when the disk is full or read-only: all older checkpoints are untouched then.
        """
        with self._busy:
            try:
                return self._write(tree, examples_seen, position)
            finally:
                for rows in {id(rows): rows for rows in _rows_in(tree)}.values():
                    rows.release()

    def _write(self, tree: Tree, examples_seen: int, position: Any) -> CheckpointInfo:
        begun = time.monotonic()
        flat = flatten(tree)
        if (place := flatten({"position": position})).arrays or place.rows:
            raise TypeError(f"a position is made of plain values only, not {position!r}")
        disk.make_directory(self.folder.shards)
        self.folder.sweep()  # first, so that what a failed save left does not fill the disk for this one
        number = max(self.folder.numbers_ever(), default=0) + 1
        try:
            saved: dict[str, RowIndex] = {}
            written = 0
            for name, rows in flat.rows.items():
                saved[name], size = save_rows(self.folder.shards, rows, self._saved.get(name))
                written += size
            places = {key: array for name, index in saved.items() for key, array in index.arrays(name).items()}
            with disk.NewFile(self.folder.root) as file:
                for piece in array_file.pieces({**flat.arrays, **places}):
                    file.write(piece)
                file.publish(self.folder.arrays_path(number).name)
            manifest = Manifest(
                number=number,
                created_at=time.time(),
                examples_seen=int(examples_seen),
                position=position,
                seconds=time.monotonic() - begun,
                bytes_written=written + file.bytes,
                sha256=state_sha256(flat.values, flat.arrays, {name: index.digest() for name, index in saved.items()}),
                libraries=libraries(),
                values=flat.values,
                arrays=StoredArrays(file.sha256, file.bytes),
                rows={name: StoredIndex(at.kind, len(at.keys), tuple(at.shards)) for name, at in saved.items()},
            )
            disk.write_file(self.folder.manifest_path(number), [encode(manifest)])  # from here on it exists
        except BaseException:
            self.folder.sweep()  # goes by the manifests, so it is right even if this one did get its name
            raise
        self._saved = saved
        self.folder.retire(self.retention, self._damaged)
        return self.folder.info(manifest)

    def load(self) -> Loaded | None:
        """The newest whole checkpoint, with what was skipped on the way to it; None if there never was one.

        Its Rows read from the disk when asked: to be read before the next save.
        """
        with self._busy:
            reader = Reader(self.folder)
            skipped: list[Skipped] = []
            for number in reversed(self.folder.numbers()):
                try:
                    manifest = self.folder.manifest(number)
                    tree, self._saved = reader.read(manifest)
                except Damaged as error:
                    skipped.append(Skipped(number, str(error)))
                except OSError as error:
                    if error.errno != errno.EIO:  # a reading error is damage; a missing permission is not
                        raise StateError(f"cannot read checkpoint {number}: {error}") from error
                    skipped.append(Skipped(number, str(error)))
                else:
                    self._damaged = {skip.number for skip in skipped}
                    return Loaded(self.folder.info(manifest), tree, skipped)
            self._refuse_to_start_from_zero(skipped)
            return None

    def _refuse_to_start_from_zero(self, skipped: Sequence[Skipped]) -> None:
        hint = f"restore {self.folder.root} from a backup; to start from zero on purpose, move it away"
        if skipped:
            reasons = "; ".join(f"{skip.number}: {skip.reason}" for skip in skipped)
            raise StateCorrupt(f"no checkpoint in {self.folder.root} is whole ({reasons})", hint)
        # The very first save may have been interrupted: files of number 1 without a manifest are no loss.
        if self.folder.started.exists() or max(self.folder.numbers_ever(), default=0) > 1:
            raise StateCorrupt(f"{self.folder.root} has held checkpoints, but none is left", hint)

    def list(self) -> Sequence[CheckpointInfo]:
        """Those whose manifest can be read, oldest first. What they point to is not checked: `verify` does."""
        return [self.folder.info(manifest) for manifest in self.folder.manifests().values()]

    def numbers(self) -> Sequence[int]:
        """All there are, damaged or not, oldest first."""
        return self.folder.numbers()

    def positions(self) -> Sequence[Any]:
        """The position of each checkpoint that is kept, oldest first: what the stream must still hold."""
        return [info.position for info in self.list()]

    def show(self, number: int | None = None) -> tuple[CheckpointInfo, Manifest]:
        """Of one checkpoint (None: the newest)."""
        number = self._existing(number)
        try:
            manifest = self.folder.manifest(number)
        except Damaged as error:
            raise StateCorrupt(f"checkpoint {number}: {error}") from error
        return self.folder.info(manifest), manifest

    def verify(self, number: int | None = None) -> dict[int, Sequence[FileCheck]]:
        """Reads every byte of one checkpoint (None: of all): a result for each of its files."""
        reader = Reader(self.folder)
        numbers = self.numbers() if number is None else [self._existing(number)]
        results = {number: reader.verify(number) for number in numbers}
        there = set(self.numbers())  # a daemon may have retired one meanwhile
        return {number: checks for number, checks in results.items() if number in there}

    def rollback(self, number: int) -> Sequence[CheckpointInfo | Skipped]:
        """Makes an older checkpoint the newest, and returns what was discarded for it, oldest first.

        The newest is moved away last: until then it is what loads, and from then on it is `number`.
        """
        with self._busy:
            self._existing(number)
            problems = [check.problem for check in Reader(self.folder).verify(number) if check.problem]
            if problems:
                raise StateCorrupt(f"checkpoint {number} is damaged ({'; '.join(problems)})", hint="choose another one")
            readable = self.folder.manifests()
            newer = [other for other in self.numbers() if other > number]
            gone = [
                self.folder.info(readable[other]) if other in readable else Skipped(other, "damaged") for other in newer
            ]
            disk.make_directory(self.folder.discarded)
            for other in newer:
                path = self.folder.manifest_path(other)
                disk.move(path, self.folder.discarded / path.name)
            self._saved = {}
            return gone

    def keep_only(self, number: int) -> None:
        """Removes every other checkpoint, and what only they needed: it must not be possible to go back."""
        with self._busy:
            self._existing(number)
            others = [other for other in self.numbers() if other != number]
            disk.remove(self.folder.manifest_path(other) for other in others)
            disk.remove(self.folder.discarded.glob("*.json"))
            disk.fsync_directory(self.folder.root)
            self.folder.sweep()

    def _existing(self, number: int | None) -> int:
        numbers = self.numbers()
        if not numbers:
            raise SettingsError([f"no checkpoints in {self.folder.root}"])
        if number is None:
            return numbers[-1]
        if number not in numbers:
            raise SettingsError(
                [f"no checkpoint {number} in {self.folder.root}"], hint=f"there are {', '.join(map(str, numbers))}"
            )
        return number


def _rows_in(node: Any) -> Iterator[Rows]:
    if isinstance(node, dict):
        for child in node.values():
            yield from _rows_in(child)
    elif isinstance(node, list):
        for child in node:
            yield from _rows_in(child)
    elif isinstance(node, Rows):
        yield node
