"""Anyone's own pictures: a folder with one sub-folder per class."""

from pathlib import Path
from typing import Annotated

import typer

from replay_producers.command import (
    Again,
    ClassOrder,
    Epochs,
    Evaluate,
    GroupsOption,
    Limit,
    Rate,
    Seed,
    StreamOption,
    TasksOption,
    run,
    send,
)
from replay_producers.datasets.folders import read_folders
from replay_producers.plan import Options
from streamlearn.cli.options import ConfigFile

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that holds one folder per class.")]
Size = Annotated[int, typer.Option("--size", min=1, help="Pictures become squares with this side.")]
Grey = Annotated[bool, typer.Option("--grey", help="One channel instead of three.")]
HoldOut = Annotated[
    float, typer.Option("--hold-out", min=0.0, max=0.9, help="Share of each class that is kept for evaluation.")
]


def command(
    directory: Directory,
    stream: StreamOption = None,
    size: Size = 32,
    grey: Grey = False,
    hold_out: HoldOut = 0.1,
    epochs: Epochs = 1,
    seed: Seed = 0,
    rate: Rate = None,
    limit: Limit = None,
    class_order: ClassOrder = None,
    tasks: TasksOption = None,
    groups: GroupsOption = "explicit",
    evaluate: Evaluate = True,
    again: Again = False,
    config: ConfigFile = None,
) -> None:
    """Send your own pictures to a stream: DIR/cat/1.jpg, DIR/dog/7.png and so on, a few classes at a time.

    With DIR/train and DIR/test, each with a folder per class, these are used as they are. Sending is idempotent: what
    the stream has already is not sent again, so the same command goes on after an interruption.
    """
    dataset = read_folders(directory, size=size, grey=grey, hold_out=hold_out)
    options = Options(seed, epochs, limit, class_order, tasks, groups, evaluate)
    send(dataset, options, stream=stream, config=config, rate=rate, again=again)


if __name__ == "__main__":
    run(command, "split_images")
