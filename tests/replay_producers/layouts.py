"""Tiny files in the layouts in which the data sets are really published, and the pictures that are in them."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pictures = NDArray[np.uint8]
Known = tuple[Pictures, list[int]]  # pictures as they look, and the place of the class of each


def noise(count: int, *shape: int, seed: int = 0) -> Pictures:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def cycling(count: int, classes: int) -> list[int]:
    return [place % classes for place in range(count)]


def write_fashion_mnist(root: Path, *, packed: bool = False, each: int = 3) -> tuple[Known, Known]:
    folder = root / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    parts = []
    for prefix, count, seed in (("train", 10 * each, 1), ("t10k", 10, 2)):
        pictures, labels = noise(count, 28, 28, seed=seed), cycling(count, 10)
        head = bytes([0, 0, 8, 3]) + np.array([count, 28, 28], ">u4").tobytes()
        _write(folder / f"{prefix}-images-idx3-ubyte", head + pictures.tobytes(), packed)
        head = bytes([0, 0, 8, 1]) + np.array([count], ">u4").tobytes()
        _write(folder / f"{prefix}-labels-idx1-ubyte", head + bytes(labels), packed)
        parts.append((pictures, labels))
    return parts[0], parts[1]


def _write(path: Path, content: bytes, packed: bool) -> None:
    if packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)


def planes(pictures: Pictures) -> Pictures:
    """As CIFAR stores them: all red, all green, all blue."""
    return np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)).reshape(len(pictures), -1)


def write_cifar10_python(root: Path) -> tuple[Known, Known]:
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    _pickle(folder / "batches.meta", {"label_names": names, "num_cases_per_batch": 10, "num_vis": 3072})
    pictures, labels = noise(50, 32, 32, 3, seed=3), cycling(50, 10)
    for number in range(5):
        some = slice(10 * number, 10 * number + 10)
        batch = {"batch_label": f"training batch {number + 1} of 5", "labels": labels[some],
                 "data": planes(pictures[some]), "filenames": ["x.png"] * 10}  # fmt: skip
        _pickle(folder / f"data_batch_{number + 1}", batch)
    tested, tested_labels = noise(20, 32, 32, 3, seed=4), cycling(20, 10)
    _pickle(folder / "test_batch", {"labels": tested_labels, "data": planes(tested), "filenames": ["x.png"] * 20})
    return (pictures, labels), (tested, tested_labels)


def write_cifar10_binary(root: Path) -> tuple[Known, Known]:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    (folder / "batches.meta.txt").write_text("airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n")
    pictures, labels = noise(50, 32, 32, 3, seed=5), cycling(50, 10)
    tested, tested_labels = noise(10, 32, 32, 3, seed=6), cycling(10, 10)
    for number in range(5):
        some = slice(10 * number, 10 * number + 10)
        _rows(folder / f"data_batch_{number + 1}.bin", pictures[some], [labels[some]])
    _rows(folder / "test_batch.bin", tested, [tested_labels])
    return (pictures, labels), (tested, tested_labels)


def _rows(path: Path, pictures: Pictures, labels: list[list[int]]) -> None:
    path.write_bytes(np.hstack([np.array(labels, np.uint8).T, planes(pictures)]).tobytes())


def write_cifar100_python(root: Path) -> tuple[Known, Known]:
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    names = [f"fine {number}" for number in range(100)]
    _pickle(folder / "meta", {"fine_label_names": names, "coarse_label_names": [f"coarse {k}" for k in range(20)]})
    parts = []
    for name, count, seed in (("train", 200, 7), ("test", 100, 8)):
        pictures, labels = noise(count, 32, 32, 3, seed=seed), cycling(count, 100)
        coarse = [label // 5 for label in labels]
        content = {"fine_labels": labels, "coarse_labels": coarse, "data": planes(pictures), "batch_label": "b"}
        _pickle(folder / name, content)
        parts.append((pictures, labels))
    return parts[0], parts[1]


def write_cifar100_binary(root: Path) -> tuple[Known, Known]:
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    (folder / "fine_label_names.txt").write_text("".join(f"fine_{number}\n" for number in range(100)))
    parts = []
    for name, count, seed in (("train", 100, 9), ("test", 100, 10)):
        pictures, labels = noise(count, 32, 32, 3, seed=seed), cycling(count, 100)
        _rows(folder / f"{name}.bin", pictures, [[label // 5 for label in labels], labels])
        parts.append((pictures, labels))
    return parts[0], parts[1]


def _pickle(path: Path, content: object) -> None:
    path.write_bytes(pickle.dumps(content, protocol=2))  # as the makers did


def core50_paths() -> list[str]:
    """One frame of each object in a training session and in a test session."""
    return [f"s{s}/o{o}/C_{s:02}_{o:02}_000.png" for s in (1, 3) for o in range(1, 51)]


def write_core50_folder(root: Path) -> tuple[Known, Known]:
    pictures = noise(100, 128, 128, 3, seed=11)
    for path, picture in zip(core50_paths(), pictures, strict=True):
        target = root / "core50_128x128" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(target)
    return (pictures[:50], list(range(50))), (pictures[50:], list(range(50)))


def write_core50_npz(root: Path, *, compressed: bool = False) -> tuple[Known, Known]:
    root.mkdir(parents=True, exist_ok=True)
    pictures = noise(100, 128, 128, 3, seed=12)
    (np.savez_compressed if compressed else np.savez)(root / "core50_imgs.npz", x=pictures)
    _pickle(root / "paths.pkl", core50_paths())
    return (pictures[:50], list(range(50))), (pictures[50:], list(range(50)))


def write_folders(root: Path, classes: tuple[str, ...] = ("cat", "dog", "owl"), each: int = 10) -> dict[str, Pictures]:
    found = {}
    for seed, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        found[name] = noise(each, 32, 32, 3, seed=20 + seed)
        for number, picture in enumerate(found[name]):
            Image.fromarray(picture).save(root / name / f"{number}.png")
    return found
