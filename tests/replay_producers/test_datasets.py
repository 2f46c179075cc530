from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from replay_producers.datasets import DataSet, Part
from replay_producers.datasets.cifar import read_cifar10, read_cifar100
from replay_producers.datasets.core50 import read_core50
from replay_producers.datasets.fashion_mnist import read_fashion_mnist
from replay_producers.datasets.folders import read_folders
from replay_producers.datasets.safe_pickle import read_pickle
from streamlearn.errors import SettingsError
from tests.replay_producers import layouts
from tests.replay_producers.layouts import Known

Read = Callable[[Path | None], DataSet]
Write = Callable[[Path], tuple[Known, Known]]

WRITTEN: list[tuple[str, Write, Read]] = [
    ("fashion-mnist", layouts.write_fashion_mnist, read_fashion_mnist),
    ("fashion-mnist gz", lambda root: layouts.write_fashion_mnist(root, packed=True), read_fashion_mnist),
    ("cifar10 python", layouts.write_cifar10_python, read_cifar10),
    ("cifar10 binary", layouts.write_cifar10_binary, read_cifar10),
    ("cifar100 python", layouts.write_cifar100_python, read_cifar100),
    ("cifar100 binary", layouts.write_cifar100_binary, read_cifar100),
    ("core50 folder", layouts.write_core50_folder, read_core50),
    ("core50 npz", layouts.write_core50_npz, read_core50),
    ("core50 npz, compressed", lambda root: layouts.write_core50_npz(root, compressed=True), read_core50),
]


def same(part: Part, known: Known) -> None:
    """The same pictures with the same classes, in any order."""
    pictures, labels = known
    read = part.read(np.arange(len(part)))
    found = sorted((int(label), picture.tobytes()) for label, picture in zip(part.labels, read, strict=True))
    assert found == sorted((label, picture.tobytes()) for label, picture in zip(labels, pictures, strict=True))


@pytest.mark.parametrize(("write", "read"), [one[1:] for one in WRITTEN], ids=[one[0] for one in WRITTEN])
def test_what_is_in_the_files_is_read(write: Write, read: Read, tmp_path: Path) -> None:
    train, test = write(tmp_path)
    dataset = read(tmp_path)
    same(dataset.train, train)
    same(dataset.test, test)
    assert sum(dataset.tasks) == len(dataset.classes)
    assert len(set(dataset.classes)) == len(dataset.classes)


def test_the_folder_itself_will_do_as_well(tmp_path: Path) -> None:
    train, _ = layouts.write_fashion_mnist(tmp_path)
    same(read_fashion_mnist(tmp_path / "FashionMNIST" / "raw").train, train)
    train, _ = layouts.write_cifar10_python(tmp_path)
    same(read_cifar10(tmp_path / "cifar-10-batches-py").train, train)


def test_arrays_of_cifar10(tmp_path: Path) -> None:
    pictures, labels = layouts.noise(10, 32, 32, 3), np.arange(10)
    np.savez(tmp_path / "cifar10.npz", x_train=pictures, y_train=labels[:, None], x_test=pictures, y_test=labels)
    dataset = read_cifar10(tmp_path)
    same(dataset.train, (pictures, labels.tolist()))
    assert dataset.classes[3] == "cat"


def test_without_a_directory_the_sample() -> None:
    dataset = read_fashion_mnist(None)
    assert (len(dataset.train), len(dataset.test), dataset.tasks) == (3000, 500, (2,) * 5)


def test_names_of_cifar100_come_from_its_files(tmp_path: Path) -> None:
    layouts.write_cifar100_python(tmp_path)
    assert read_cifar100(tmp_path).classes[7] == "fine 7"


def test_core50_is_told_apart_by_object(tmp_path: Path) -> None:
    layouts.write_core50_npz(tmp_path)
    dataset = read_core50(tmp_path)
    assert dataset.classes[0] == "plug_adapter1"
    assert dataset.classes[49] == "remote_control5"
    assert dataset.tasks == (10, 5, 5, 5, 5, 5, 5, 5, 5)


# ---------------------------------------------------------------------- missing and damaged


@pytest.mark.parametrize("read", [read_cifar10, read_cifar100, read_core50])
def test_no_directory_given(read: Read) -> None:
    with pytest.raises(SettingsError, match="--data-dir is missing") as error:
        read(None)
    assert "http" in error.value.hint


@pytest.mark.parametrize("read", [read_fashion_mnist, read_cifar10, read_cifar100, read_core50])
def test_an_empty_directory_says_where_it_was_looked(read: Read, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=str(tmp_path)) as error:
        read(tmp_path)
    assert "looked" in str(error.value)
    assert "http" in error.value.hint


@pytest.mark.parametrize(
    ("write", "read", "gone"),
    [
        (layouts.write_fashion_mnist, read_fashion_mnist, "FashionMNIST/raw/t10k-labels-idx1-ubyte"),
        (layouts.write_cifar10_python, read_cifar10, "cifar-10-batches-py/data_batch_4"),
        (layouts.write_cifar10_python, read_cifar10, "cifar-10-batches-py/batches.meta"),
        (layouts.write_cifar10_binary, read_cifar10, "cifar-10-batches-bin/data_batch_2.bin"),
        (layouts.write_cifar100_python, read_cifar100, "cifar-100-python/test"),
        (layouts.write_core50_npz, read_core50, "paths.pkl"),
    ],
)
def test_a_missing_file_is_named(write: Write, read: Read, gone: str, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / gone).unlink()
    with pytest.raises(SettingsError, match=Path(gone).name) as error:
        read(tmp_path)
    assert str((tmp_path / gone).parent) in str(error.value)


@pytest.mark.parametrize(
    ("write", "read", "name"),
    [
        (layouts.write_fashion_mnist, read_fashion_mnist, "FashionMNIST/raw/train-images-idx3-ubyte"),
        (layouts.write_cifar10_python, read_cifar10, "cifar-10-batches-py/data_batch_1"),
        (layouts.write_cifar10_binary, read_cifar10, "cifar-10-batches-bin/test_batch.bin"),
        (layouts.write_cifar100_python, read_cifar100, "cifar-100-python/train"),
        (layouts.write_core50_npz, read_core50, "core50_imgs.npz"),
        (layouts.write_core50_npz, read_core50, "paths.pkl"),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.65])
def test_a_file_cut_short_is_named(write: Write, read: Read, name: str, share: float, tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / name
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(SettingsError, match="damaged") as error:
        read(tmp_path)
    assert str(path) in str(error.value)
    assert "get it again" in error.value.hint


def test_a_packed_file_cut_short_is_named(tmp_path: Path) -> None:
    layouts.write_fashion_mnist(tmp_path, packed=True)
    path = tmp_path / "FashionMNIST/raw/train-images-idx3-ubyte.gz"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(SettingsError, match="does not unpack"):
        read_fashion_mnist(tmp_path)


def test_a_picture_that_is_none(tmp_path: Path) -> None:
    layouts.write_core50_folder(tmp_path)
    bad = tmp_path / "core50_128x128/s1/o7/C_01_07_000.png"
    bad.write_bytes(b"no picture")
    dataset = read_core50(tmp_path)
    with pytest.raises(SettingsError, match="C_01_07_000"):
        dataset.train.read(np.arange(len(dataset.train)))


class Calling:
    """What a pickle made with bad intent holds."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (self.arguments[0], self.arguments[1:])


def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path) -> None:
    path, witness = tmp_path / "paths.pkl", tmp_path / "witness"
    for call in (Calling(os.system, f"touch {witness}"), Calling(eval, f"open({str(witness)!r}, 'w')")):
        path.write_bytes(pickle.dumps({"data": call}))
        with pytest.raises(SettingsError, match="which no picture needs"):
            read_pickle(path, "hint")
    assert not witness.exists()


# ---------------------------------------------------------------------- folders


def test_folders_hold_out_a_share_of_each_class(tmp_path: Path) -> None:
    written = layouts.write_folders(tmp_path)
    dataset = read_folders(tmp_path, size=32, grey=False, hold_out=0.2)
    assert dataset.classes == ("cat", "dog", "owl")
    assert dataset.tasks == (2, 1)
    assert (len(dataset.train), len(dataset.test)) == (24, 6)
    found = {picture.tobytes() for part in (dataset.train, dataset.test) for picture in part.read(np.arange(len(part)))}
    assert found == {picture.tobytes() for pictures in written.values() for picture in pictures}


def test_folders_for_training_and_testing(tmp_path: Path) -> None:
    layouts.write_folders(tmp_path / "train")
    layouts.write_folders(tmp_path / "test", each=2)
    dataset = read_folders(tmp_path, size=16, grey=True, hold_out=0.5)
    assert (len(dataset.train), len(dataset.test)) == (30, 6)
    assert dataset.train.read(np.array([0])).shape == (1, 16, 16)
    layouts.write_folders(tmp_path / "test" / "x", classes=("fox",))
    (tmp_path / "test" / "x").rename(tmp_path / "test" / "fox")
    with pytest.raises(SettingsError, match="fox"):
        read_folders(tmp_path, size=16, grey=True, hold_out=0.5)


def test_folders_without_classes(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="0 classes"):
        read_folders(tmp_path, size=16, grey=True, hold_out=0.5)
    with pytest.raises(SettingsError, match="not a directory"):
        read_folders(tmp_path / "nowhere", size=16, grey=True, hold_out=0.5)
