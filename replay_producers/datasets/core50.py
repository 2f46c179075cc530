"""CORe-50, 128 x 128: the folder of pictures, or all of them in core50_imgs.npz with paths.pkl beside it.

A picture is named sS/oO/C_SS_OO_FFF.png after its session, object and frame. Every object is a class; the sessions 3, 7
and 10 are for testing, the other eight for training.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from replay_producers.datasets.dataset import DataSet, Part, Pictures, Places
from replay_producers.datasets.files import damaged, find, find_folder
from replay_producers.datasets.safe_pickle import read_pickle
from streamlearn.errors import SettingsError

NAME = "split-core50"
TASKS = (10,) + (5,) * 8
SIDE = 128
TEST_SESSIONS = (3, 7, 10)
HINT = (
    "http://bias.csr.unibo.it/maltoni/download/core50/ has core50_128x128.zip (unpack it), or core50_imgs.npz, which "
    "needs https://vlomonaco.github.io/core50/data/paths.pkl beside it"
)
_KINDS = ("plug_adapter", "mobile_phone", "scissor", "light_bulb", "can", "glass", "ball", "marker", "cup",
          "remote_control")  # fmt: skip
CLASSES = tuple(f"{kind}{number}" for kind in _KINDS for number in range(1, 6))
_PATH = re.compile(r"(?:.*/)?s(\d+)/o(\d+)/C_\d+_\d+_\d+\.png")


def read_core50(data_dir: Path | None) -> DataSet:
    if data_dir is None:
        raise SettingsError(["--data-dir is missing: CORe-50 does not ship with streamlearn"], HINT)
    if (data_dir / "core50_imgs.npz").is_file():
        return _from_npz(data_dir)
    folder = find_folder(data_dir, ("core50_128x128", "."), [f"s{session}" for session in range(1, 12)])
    if folder is None:
        places = ", ".join(str(data_dir / place) for place in ("core50_128x128/s1 to s11", "core50_imgs.npz"))
        raise SettingsError([f"no CORe-50 in {data_dir}; looked for {places}"], HINT)
    return _from_folder(folder)


def _from_folder(folder: Path) -> DataSet:
    files = sorted(folder.glob("s*/o*/C_*.png"))
    if not files:
        raise SettingsError([f"no pictures in {folder}: expected s1/o1/C_01_01_000.png and so on"], HINT)

    def read(places: Places) -> Pictures:
        return np.stack([_picture(files[place]) for place in places])

    return _split([path.relative_to(folder).as_posix() for path in files], read, folder, folder)


def _picture(path: Path) -> Pictures:
    try:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        raise damaged(path, f"it is not a picture: {error}", HINT) from error
    if pixels.shape != (SIDE, SIDE, 3):
        raise damaged(path, f"it is {pixels.shape[1]} x {pixels.shape[0]} and not {SIDE} x {SIDE}", HINT)
    return pixels


def _from_npz(data_dir: Path) -> DataSet:
    paths_at = find(data_dir, (".",), ("paths.pkl",), HINT)
    paths = read_pickle(paths_at, HINT)
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise damaged(paths_at, "it is not a list of paths", HINT)
    npz = data_dir / "core50_imgs.npz"
    pictures = _rows_of(npz)
    if pictures.shape != (len(paths), SIDE, SIDE, 3) or pictures.dtype != np.uint8:
        raise damaged(npz, f"x is {pictures.dtype} of {pictures.shape} for {len(paths):,} paths in {paths_at}", HINT)
    return _split(paths, lambda places: np.asarray(pictures[places]), paths_at, data_dir)


def _rows_of(npz: Path) -> NDArray[np.uint8]:
    """The array x, as rows that stay on the disk until they are asked for: it has 8 GB."""
    try:
        with zipfile.ZipFile(npz) as archive:
            member = archive.getinfo("x.npy")
            if member.compress_type != zipfile.ZIP_STORED:
                with np.load(npz, allow_pickle=False) as arrays:
                    whole: NDArray[np.uint8] = arrays["x"]
                return whole
            with archive.open(member) as file:
                version_1 = np.lib.format.read_magic(file) == (1, 0)
                read_header = np.lib.format.read_array_header_1_0 if version_1 else np.lib.format.read_array_header_2_0
                shape, by_column, dtype = read_header(file)
                head = file.tell()
        # A zip entry has a header of its own before its content; how long it is stands in that header only.
        with npz.open("rb") as raw:
            raw.seek(member.header_offset)
            local = raw.read(30)
        name_and_extra = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        start = member.header_offset + len(local) + name_and_extra + head
        return np.memmap(npz, dtype, "r", offset=start, shape=shape, order="F" if by_column else "C")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise damaged(npz, f"the array x cannot be read from it: {error}", HINT) from error


def _split(paths: Sequence[str], read: Callable[[Places], Pictures], named_in: Path, source: Path) -> DataSet:
    sessions, objects = np.zeros(len(paths), np.int64), np.zeros(len(paths), np.int64)
    for place, path in enumerate(paths):
        match = _PATH.fullmatch(path)
        if match is None or not 1 <= int(match[2]) <= len(CLASSES):
            raise damaged(named_in, f"{path!r} is not named as sS/oO/C_SS_OO_FFF.png", HINT)
        sessions[place], objects[place] = int(match[1]), int(match[2]) - 1
    held_out = np.isin(sessions, TEST_SESSIONS)

    def part(members: Places) -> Part:
        return Part(objects[members], lambda places: read(members[places]))

    return DataSet(NAME, CLASSES, part(np.flatnonzero(~held_out)), part(np.flatnonzero(held_out)), TASKS, str(source))
