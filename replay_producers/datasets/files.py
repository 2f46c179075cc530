"""Finding the files of a data set, and saying plainly which one is missing or damaged."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

from streamlearn.errors import SettingsError


def find(data_dir: Path, folders: Sequence[str], names: Sequence[str], hint: str) -> Path:
    """The first of `names` in the first of `folders` (below `data_dir`) that has one."""
    if not data_dir.is_dir():
        raise SettingsError([f"--data-dir {data_dir} is not a directory"], hint)
    for folder in folders:
        for name in names:
            if (path := data_dir / folder / name).is_file():
                return path
    looked = ", ".join(str(data_dir / folder) for folder in folders)
    raise SettingsError([f"{' or '.join(names)} is missing; looked in {looked}"], hint)


def find_folder(data_dir: Path, folders: Sequence[str], holding: Sequence[str]) -> Path | None:
    """The first of `folders` (below `data_dir`) with any of the files `holding`."""
    for folder in folders:
        if any((data_dir / folder / name).exists() for name in holding):
            return data_dir / folder
    return None


def damaged(path: Path, what: str, hint: str) -> SettingsError:
    return SettingsError([f"{path} is damaged: {what}"], f"delete it and get it again: {hint}")


def read_bytes(path: Path, hint: str) -> bytes:
    """The content, unpacked if the name ends in .gz."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise damaged(path, f"it does not unpack ({error})", hint) from error
    except OSError as error:
        raise SettingsError([f"{path} cannot be read: {error.strerror or error}"], hint) from error
