"""The folder of checkpoints: which files are in it, what each is for, and which are no longer needed.

    checkpoints/00000012.json           the manifest; once it is there, checkpoint 12 exists
    checkpoints/00000012.safetensors    its arrays, and in which shard each row of the large ones is
    checkpoints/shards/<sha256>...      rows, shared with other checkpoints
    checkpoints/discarded/              manifests a rollback took away; with what only they need, gone after a save
    checkpoints/started                 there has been a checkpoint here: without one left, never start from zero

Files with other names are nobody's business and stay.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlearn import disk
from streamlearn.checkpoint.damage import Damaged, chunks, opened
from streamlearn.checkpoint.manifest import MANIFEST_BYTES, Manifest, decode
from streamlearn.checkpoint.retention import Retention

_NAME = re.compile(r"([0-9]{8,18})\.(json|safetensors)")
_STARTED = b"Checkpoints have been saved here. Should none be left, streamlearn refuses to start again from zero.\n"


@dataclass(frozen=True)
class CheckpointInfo:
    number: int
    created_at: float  # seconds since 1970
    examples_seen: int
    position: Any  # as it was given to write
    bytes_written: int  # by its save
    bytes_total: int  # of all files it needs, shared ones included
    sha256: str  # of the whole state
    seconds: float  # its save took
    path: Path  # of its manifest


class Folder:
    def __init__(self, state_dir: Path) -> None:
        self.root = state_dir / "checkpoints"
        self.shards = self.root / "shards"
        self.discarded = self.root / "discarded"
        self.started = self.root / "started"

    def manifest_path(self, number: int) -> Path:
        return self.root / f"{number:08d}.json"

    def arrays_path(self, number: int) -> Path:
        return self.root / f"{number:08d}.safetensors"

    def numbers(self) -> list[int]:
        """All checkpoints there are, damaged or not, oldest first."""
        return _numbers(self.root, "json")

    def numbers_ever(self) -> list[int]:
        """Also of those that were discarded, or begun and never finished: numbers are not used twice."""
        return sorted({*_numbers(self.root, "json", "safetensors"), *_numbers(self.discarded, "json")})

    def manifest(self, number: int) -> Manifest:
        return _read_manifest(self.manifest_path(number), number)

    def manifests(self) -> dict[int, Manifest]:
        """Those that can be read, oldest first."""
        return _manifests(self.root)

    def info(self, manifest: Manifest) -> CheckpointInfo:
        path = self.manifest_path(manifest.number)
        size = 0
        with contextlib.suppress(OSError):  # gone between two looks: a daemon retires old ones
            size = path.stat().st_size
        return CheckpointInfo(
            number=manifest.number,
            created_at=manifest.created_at,
            examples_seen=manifest.examples_seen,
            position=manifest.position,
            bytes_written=manifest.bytes_written + size,
            bytes_total=manifest.bytes_total + size,
            sha256=manifest.sha256,
            seconds=manifest.seconds,
            path=path,
        )

    def retire(self, retention: Retention, damaged: Collection[int]) -> None:
        """After a save, so nothing here may fail it: what cannot be removed now is removed by the next."""
        with contextlib.suppress(OSError):
            if not self.started.exists():
                disk.write_file(self.started, [_STARTED])
            numbers = set(self.numbers())
            whole = self.manifests().keys() - set(damaged)
            stays = retention.stays(whole, numbers - whole)
            disk.remove(self.manifest_path(number) for number in sorted(numbers - stays))
            disk.remove(self.discarded / f"{number:08d}.json" for number in _numbers(self.discarded, "json"))
            disk.fsync_directory(self.root)  # no manifest may come back after its files are gone
            self.sweep()

    def sweep(self) -> None:
        """Removes what no manifest needs. A manifest that cannot be read for now (OSError) protects everything."""
        with contextlib.suppress(OSError):
            manifests = [*self.manifests().values(), *_manifests(self.discarded).values()]
            shards = {shard.name for manifest in manifests for shard in manifest.shards()}
            numbers = {*self.numbers(), *_numbers(self.discarded, "json")}
            for number in _numbers(self.root, "safetensors"):
                if number not in numbers:
                    disk.remove([self.arrays_path(number)])
            disk.remove(path for path in self.shards.glob("*.safetensors") if path.name not in shards)
            for directory in (self.root, self.shards):
                disk.remove(directory.glob(f"*{disk.TEMPORARY}"))


def _numbers(directory: Path, *kinds: str) -> list[int]:
    if not directory.is_dir():
        return []
    names = (_NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted({int(name[1]) for name in names if name and name[2] in kinds})


def _manifests(directory: Path) -> dict[int, Manifest]:
    found = {}
    for number in _numbers(directory, "json"):
        with contextlib.suppress(Damaged):
            found[number] = _read_manifest(directory / f"{number:08d}.json", number)
    return found


def _read_manifest(path: Path, number: int) -> Manifest:
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > MANIFEST_BYTES:
            raise Damaged(f"{path.name} has {size} bytes")
        return decode(b"".join(chunks(descriptor)), number)
