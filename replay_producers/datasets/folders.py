"""Anyone's own pictures: a folder with one sub-folder per class, or `train` and `test` folders of such sub-folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from replay_producers.datasets.dataset import DataSet, Part, Pictures, Places
from streamlearn.errors import SettingsError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
HINT = "DIR/cat/1.jpg, DIR/dog/7.png and so on: the name of the folder is the name of the class"


def read_folders(root: Path, *, size: int, grey: bool, hold_out: float) -> DataSet:
    """`hold_out` is the share of each class kept for evaluation, unless there is a `test` folder."""
    if not root.is_dir():
        raise SettingsError([f"{root} is not a directory"], HINT)
    if (root / "train").is_dir() and (root / "test").is_dir():
        train, test = _files(root / "train"), _files(root / "test")
        if unknown := sorted(test.keys() - train.keys()):
            raise SettingsError([f"{root / 'test'} has classes that {root / 'train'} has not: {', '.join(unknown)}"])
    else:
        everything = _files(root)
        test = {name: files[: round(len(files) * hold_out)] for name, files in everything.items()}
        train = {name: files[len(test[name]) :] for name, files in everything.items()}
    classes = tuple(sorted(train))
    if len(classes) < 2:
        raise SettingsError([f"{root} has pictures of {len(classes)} classes; two are the least"], HINT)
    return DataSet(
        f"split-images-{root.resolve().name}",
        classes,
        _part(train, classes, size, grey),
        _part(test, classes, size, grey),
        (2,) * (len(classes) // 2) + (1,) * (len(classes) % 2),
        str(root),
    )


def _files(root: Path) -> dict[str, list[Path]]:
    """The pictures of each class in an order that is the same everywhere, and mixed: names often follow time."""
    found: dict[str, list[Path]] = {}
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")):
        files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
        if files:
            order = np.random.default_rng(0).permutation(len(files))
            found[folder.name] = [files[place] for place in order]
    return found


def _part(files: dict[str, list[Path]], classes: tuple[str, ...], size: int, grey: bool) -> Part:
    paths = [path for name in classes for path in files.get(name, ())]
    labels = [place for place, name in enumerate(classes) for _ in files.get(name, ())]
    shape = (size, size) if grey else (size, size, 3)

    def read(places: Places) -> Pictures:
        pictures = np.empty((len(places), *shape), np.uint8)
        for row, place in enumerate(places):
            pictures[row] = _picture(paths[place], size, grey)
        return pictures

    return Part(np.array(labels, np.int64), read)


def _picture(path: Path, size: int, grey: bool) -> Pictures:
    """The middle square of the picture, as it would be seen upright."""
    try:
        with Image.open(path) as picture:
            upright = ImageOps.exif_transpose(picture).convert("L" if grey else "RGB")
            if upright.size != (size, size):
                upright = ImageOps.fit(upright, (size, size), Image.Resampling.BILINEAR)
            return np.asarray(upright)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise SettingsError([f"{path} is not a picture: {error}"], "mend it or take it out of the folder") from error
