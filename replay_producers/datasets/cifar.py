"""CIFAR-10 and CIFAR-100: the python version (torchvision's layout), the binary version, or an .npz of arrays."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay_producers.datasets.dataset import DataSet, Part, part_of
from replay_producers.datasets.files import damaged, find, find_folder, read_bytes
from replay_producers.datasets.safe_pickle import read_pickle
from streamlearn.errors import SettingsError
from streamlearn.settings.presets import CIFAR10_CLASSES

PIXELS = 3 * 32 * 32


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the makers of one of the two put what."""

    name: str
    title: str
    tasks: tuple[int, ...]
    python_folder: str
    binary_folder: str
    train: tuple[str, ...]  # file names of the python version; the binary ones end in .bin
    test: tuple[str, ...]
    names_file: str
    names_key: str
    binary_names_file: str
    labels_key: str
    label_bytes: int  # before each picture of the binary version; the last one is ours
    npz: str

    @property
    def hint(self) -> str:
        kind = self.title.replace("-", "")
        return (
            f"torchvision.datasets.{kind}(DIR, download=True) fetches it into DIR/{self.python_folder}; "
            f"it is also at https://www.cs.toronto.edu/~kriz/cifar.html (the python or the binary version), "
            f"and {self.npz} with x_train, y_train, x_test, y_test will do"
        )


CIFAR10 = Layout(
    name="split-cifar10",
    title="CIFAR-10",
    tasks=(2,) * 5,
    python_folder="cifar-10-batches-py",
    binary_folder="cifar-10-batches-bin",
    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test=("test_batch",),
    names_file="batches.meta",
    names_key="label_names",
    binary_names_file="batches.meta.txt",
    labels_key="labels",
    label_bytes=1,
    npz="cifar10.npz",
)
CIFAR100 = Layout(
    name="split-cifar100",
    title="CIFAR-100",
    tasks=(10,) * 10,
    python_folder="cifar-100-python",
    binary_folder="cifar-100-binary",
    train=("train",),
    test=("test",),
    names_file="meta",
    names_key="fine_label_names",
    binary_names_file="fine_label_names.txt",
    labels_key="fine_labels",
    label_bytes=2,
    npz="cifar100.npz",
)


def read_cifar10(data_dir: Path | None) -> DataSet:
    return _read(data_dir, CIFAR10)


def read_cifar100(data_dir: Path | None) -> DataSet:
    return _read(data_dir, CIFAR100)


def _read(data_dir: Path | None, layout: Layout) -> DataSet:
    if data_dir is None:
        raise SettingsError([f"--data-dir is missing: {layout.title} does not ship with streamlearn"], layout.hint)
    any_file = (*layout.train, *layout.test, layout.names_file)
    if folder := find_folder(data_dir, (layout.python_folder, "."), any_file):
        names, train, test = _python(folder, layout)
    elif folder := find_folder(data_dir, (layout.binary_folder, "."), [f"{name}.bin" for name in any_file]):
        names, train, test = _binary(folder, layout)
    elif (data_dir / layout.npz).is_file():
        names, train, test = _arrays(data_dir / layout.npz, layout)
    else:
        places = ", ".join(str(data_dir / place) for place in (layout.python_folder, layout.binary_folder, layout.npz))
        raise SettingsError([f"no {layout.title} in {data_dir}; looked for {places}"], layout.hint)
    for part in (train, test):
        if len(part) and int(part.labels.max()) >= len(names):
            raise SettingsError([f"{data_dir} names class {part.labels.max()}, and there are {len(names)}"])
    return DataSet(layout.name, names, train, test, layout.tasks, str(data_dir))


# ---------------------------------------------------------------------- the python version


def _python(folder: Path, layout: Layout) -> tuple[tuple[str, ...], Part, Part]:
    meta_at = find(folder, (".",), (layout.names_file,), layout.hint)
    meta = read_pickle(meta_at, layout.hint)
    try:
        names = tuple(str(name) for name in meta[layout.names_key])
    except (KeyError, TypeError) as error:
        raise damaged(meta_at, f"it has no {layout.names_key}", layout.hint) from error
    return names, _pickles(folder, layout.train, layout), _pickles(folder, layout.test, layout)


def _pickles(folder: Path, files: tuple[str, ...], layout: Layout) -> Part:
    pictures, labels = [], []
    for name in files:
        path = find(folder, (".",), (name,), layout.hint)
        batch: Any = read_pickle(path, layout.hint)
        try:
            data, classes = np.asarray(batch["data"]), np.asarray(batch[layout.labels_key], np.int64)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, f"it has no data or no {layout.labels_key}", layout.hint) from error
        if data.dtype != np.uint8 or data.shape != (len(classes), PIXELS):
            raise damaged(path, f"data is {data.dtype} of {data.shape} for {len(classes)} labels", layout.hint)
        pictures.append(_upright(data))
        labels.append(classes)
    return part_of(np.concatenate(pictures), np.concatenate(labels))


def _upright(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """All red, all green, all blue -> rows of pixels."""
    return np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


# ---------------------------------------------------------------------- the binary version


def _binary(folder: Path, layout: Layout) -> tuple[tuple[str, ...], Part, Part]:
    names_at = find(folder, (".",), (layout.binary_names_file,), layout.hint)
    names = tuple(read_bytes(names_at, layout.hint).decode("latin1").split())
    if not names:
        raise damaged(names_at, "it is empty", layout.hint)
    return names, _bins(folder, layout.train, layout), _bins(folder, layout.test, layout)


def _bins(folder: Path, files: tuple[str, ...], layout: Layout) -> Part:
    pictures, labels = [], []
    row = layout.label_bytes + PIXELS
    for name in files:
        path = find(folder, (".",), (f"{name}.bin",), layout.hint)
        content = np.frombuffer(read_bytes(path, layout.hint), np.uint8)
        if not len(content) or len(content) % row:
            raise damaged(path, f"it has {len(content):,} bytes, which is no multiple of {row}", layout.hint)
        rows = content.reshape(-1, row)
        pictures.append(_upright(rows[:, layout.label_bytes :]))
        labels.append(rows[:, layout.label_bytes - 1])
    return part_of(np.concatenate(pictures), np.concatenate(labels))


# ---------------------------------------------------------------------- arrays


def _arrays(path: Path, layout: Layout) -> tuple[tuple[str, ...], Part, Part]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            parts = [
                (arrays[f"x_{which}"], np.asarray(arrays[f"y_{which}"]).reshape(-1)) for which in ("train", "test")
            ]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise damaged(path, f"x_train, y_train, x_test, y_test cannot be read from it: {error}", layout.hint) from error
    for pictures, labels in parts:
        if pictures.dtype != np.uint8 or pictures.shape != (len(labels), 32, 32, 3):
            raise damaged(path, f"pictures are {pictures.dtype} of {pictures.shape}", layout.hint)
    names = CIFAR10_CLASSES if layout is CIFAR10 else tuple(f"class-{number}" for number in range(100))
    return names, part_of(*parts[0]), part_of(*parts[1])
