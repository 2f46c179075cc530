"""One checkpoint, read and checked: every byte against its SHA-256 before any of it is used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

from streamlearn.checkpoint import arrays as array_file
from streamlearn.checkpoint.damage import Damaged, chunks, opened
from streamlearn.checkpoint.folder import Folder
from streamlearn.checkpoint.index import RowIndex, StoredRows, load_index
from streamlearn.checkpoint.manifest import Manifest
from streamlearn.checkpoint.shards import Digests, RowKind, Shard, check_shard
from streamlearn.checkpoint.tree import AnyArray, Tree, state_sha256, unflatten

_Arguments = ParamSpec("_Arguments")


@dataclass(frozen=True)
class FileCheck:
    """One file of a checkpoint; `problem` is empty when it is as it was written."""

    path: Path
    bytes: int
    problem: str = ""


class Reader:
    """Reads the checkpoints of one folder; a shard that several of them share is checked once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._checked: dict[tuple[Shard, RowKind], Digests | Damaged] = {}

    def read(self, manifest: Manifest) -> tuple[Tree, dict[str, RowIndex]]:
        """The state, and where its rows are."""
        arrays = self._arrays(manifest)
        indexes = {}
        for name, stored in manifest.rows.items():
            digests = [self._digests(shard, stored.kind) for shard in stored.shards]
            indexes[name] = load_index(stored.kind, stored.slots, list(stored.shards), name, arrays, digests)
        own = {name: array for name, array in arrays.items() if name.startswith("/")}
        rows = {name: StoredRows(self._folder.shards, index) for name, index in indexes.items()}
        try:
            tree = unflatten(manifest.values, own, rows)
        except RecursionError as error:
            raise Damaged("the values are nested too deeply") from error
        found = state_sha256(manifest.values, own, {name: index.digest() for name, index in indexes.items()})
        if found != manifest.sha256 or not isinstance(tree, dict):
            raise Damaged("its files do not make up the state that was saved")
        return tree, indexes

    def verify(self, number: int) -> list[FileCheck]:
        """What is right and wrong with each file of a checkpoint."""
        path = self._folder.manifest_path(number)
        try:
            manifest = self._folder.manifest(number)
        except Damaged as error:
            return [FileCheck(path, 0, str(error))]
        size = self._folder.info(manifest).bytes_total - manifest.bytes_total
        checks = [FileCheck(self._folder.arrays_path(number), manifest.arrays.bytes, _problem(self._arrays, manifest))]
        for shard, kind in manifest.shards().items():
            path_of_shard = self._folder.shards / shard.name
            checks.append(FileCheck(path_of_shard, shard.size(kind), _problem(self._digests, shard, kind)))
        if any(check.problem for check in checks):
            return [FileCheck(path, size), *checks]
        # Each file is whole: do they belong together?
        return [FileCheck(path, size, _problem(self.read, manifest)), *checks]

    def _arrays(self, manifest: Manifest) -> dict[str, AnyArray]:
        path = self._folder.arrays_path(manifest.number)
        with opened(path, manifest.arrays.bytes) as descriptor:
            content = b"".join(chunks(descriptor))
        if hashlib.sha256(content).hexdigest() != manifest.arrays.sha256:
            raise Damaged(f"{path.name} has changed since it was written")
        return array_file.parse(content)

    def _digests(self, shard: Shard, kind: RowKind) -> Digests:
        result = self._checked.get((shard, kind))
        if result is None:
            try:
                result = check_shard(self._folder.shards, kind, shard)
            except Damaged as error:
                result = error
            self._checked[shard, kind] = result
        if isinstance(result, Damaged):
            raise result
        return result


def _problem(check: Callable[_Arguments, object], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> str:
    try:
        check(*args, **kwargs)
    except Damaged as error:
        return str(error)
    return ""
