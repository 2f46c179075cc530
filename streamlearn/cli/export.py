"""`streamlearn export`: the newest model of a state directory, for other programs to load."""

from __future__ import annotations

from os.path import isdir  # unlike Path's, it has an answer for every name
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamlearn import disk
from streamlearn.cli.checkpoints import StateDir
from streamlearn.errors import SettingsError, StateCorrupt, StateError, StateIncompatible, StreamlearnError
from streamlearn.export import Format, check_installed, export_model

if TYPE_CHECKING:
    from streamlearn.checkpoint import CheckpointInfo, CheckpointStore, Tree

ATTEMPTS = 10  # a daemon that saves often may retire what is just being read


def export(
    file_format: Annotated[Format, typer.Option("--format", "-f", help="What to write.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write or replace.", metavar="FILE")],
    state_dir: StateDir = Path("streamlearn-state"),
    checkpoint: Annotated[
        int | None, typer.Option("--checkpoint", help="Which one; without it the newest.", metavar="NUMBER")
    ] = None,
) -> None:
    """Write the learned model to a file: raw inputs in, a probability for each known class out.

    Works while a daemon runs on the directory. onnx and torchscript hold everything from normalisation to softmax, for
    batches of any size; safetensors holds the weights, and the rest as metadata. The file is private to its owner, as
    the state is.
    """
    if not isdir(state_dir):
        raise SettingsError([f"--state-dir: {state_dir} is not a directory"])
    if not isdir(output.parent):
        raise SettingsError([f"--output: {output.parent} is not a directory"], hint="make it first")
    if isdir(output):
        raise SettingsError([f"--output: {output} is a directory"], hint="name the file")
    check_installed(file_format)
    from streamlearn.checkpoint import CheckpointStore

    store = CheckpointStore(state_dir)
    info, tree = newest(store) if checkpoint is None else chosen(store, checkpoint)
    if "learner" not in tree:
        raise StateIncompatible(f"checkpoint {info.number} holds no learner")
    content = export_model(tree["learner"], file_format)
    try:
        disk.write_file(output, [content])
    except OSError as error:
        raise StreamlearnError(f"{output} cannot be written: {error.strerror}") from error
    typer.echo(f"{output}: checkpoint {info.number}, {info.examples_seen:,} examples, {len(content):,} bytes")


def newest(store: CheckpointStore) -> tuple[CheckpointInfo, Tree]:
    """The newest whole checkpoint of a directory that somebody else may be saving to."""
    for attempt in range(1, ATTEMPTS + 1):
        before = store.numbers()
        try:
            loaded = store.load()
        except StateCorrupt:
            if attempt == ATTEMPTS or store.numbers() == before:
                raise
            continue  # what was there is gone, but there is something newer
        if loaded is None:
            break
        retired = [skip for skip in loaded.skipped if skip.number not in store.numbers()]
        if retired and attempt < ATTEMPTS:
            continue
        for skip in loaded.skipped:
            typer.echo(f"warning: checkpoint {skip.number} is damaged and was left out: {skip.reason}", err=True)
        return loaded.info, loaded.tree
    raise SettingsError(
        [f"no checkpoints in {store.folder.root} yet"], hint="a daemon saves one after a while, and when it stops"
    )


def chosen(store: CheckpointStore, number: int) -> tuple[CheckpointInfo, Tree]:
    from streamlearn.checkpoint.damage import Damaged
    from streamlearn.checkpoint.reader import Reader

    info, manifest = store.show(number)
    try:
        tree, _ = Reader(store.folder).read(manifest)
    except Damaged as error:
        store.show(number)  # retired meanwhile: this says so, and which there are
        raise StateCorrupt(f"checkpoint {number} is damaged: {error}", hint="choose another one") from error
    except OSError as error:
        raise StateError(f"cannot read checkpoint {number}: {error}") from error
    return info, tree
