"""Fashion-MNIST: torchvision's files if there is a directory, else the sample that ships with the project."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replay_producers.datasets.dataset import DataSet, Part, part_of
from replay_producers.datasets.files import damaged, find, read_bytes
from streamlearn.sample import load_sample
from streamlearn.settings.presets import FASHION_MNIST_CLASSES

NAME = "split-fashion-mnist"
TASKS = (2,) * 5
FOLDERS = ("FashionMNIST/raw", "raw", ".")
HINT = (
    "torchvision.datasets.FashionMNIST(DIR, download=True) fetches all four files into DIR/FashionMNIST/raw; "
    "they are also at https://github.com/zalandoresearch/fashion-mnist. Without --data-dir a small sample is used"
)


def read_fashion_mnist(data_dir: Path | None) -> DataSet:
    if data_dir is None:
        sample = load_sample()
        train, test = part_of(sample.train, sample.train_labels), part_of(sample.test, sample.test_labels)
        return DataSet(NAME, FASHION_MNIST_CLASSES, train, test, TASKS, "the sample that ships with streamlearn")
    return DataSet(NAME, FASHION_MNIST_CLASSES, _part(data_dir, "train"), _part(data_dir, "t10k"), TASKS, str(data_dir))


def _part(data_dir: Path, prefix: str) -> Part:
    pictures, where = _idx(data_dir, f"{prefix}-images-idx3-ubyte", 3)
    labels, labels_at = _idx(data_dir, f"{prefix}-labels-idx1-ubyte", 1)
    if len(pictures) != len(labels):
        raise damaged(labels_at, f"it has {len(labels):,} labels for the {len(pictures):,} pictures of {where}", HINT)
    if len(labels) and labels.max() >= len(FASHION_MNIST_CLASSES):
        raise damaged(labels_at, f"it names class {labels.max()}, and there are ten", HINT)
    return part_of(pictures, labels)


def _idx(data_dir: Path, name: str, dimensions: int) -> tuple[NDArray[np.uint8], Path]:
    """The idx format: 0, 0, 8 (unsigned bytes), the number of dimensions, each size in four bytes, the content."""
    path = find(data_dir, FOLDERS, (name, f"{name}.gz"), HINT)
    content = read_bytes(path, HINT)
    head = 4 + 4 * dimensions
    if len(content) < head or content[:4] != bytes([0, 0, 8, dimensions]):
        raise damaged(path, "it does not begin as an idx file does", HINT)
    shape = tuple(int(size) for size in np.frombuffer(content[4:head], ">u4"))
    if len(content) != head + math.prod(shape):
        raise damaged(path, f"it should have {head + math.prod(shape):,} bytes and has {len(content):,}", HINT)
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape), path
