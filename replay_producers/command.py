"""The options that all producers have, and what happens once they are given."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from replay_producers.datasets.dataset import DataSet
from replay_producers.plan import Options
from replay_producers.producer import StopFlag, produce
from replay_producers.progress import bar, say
from replay_producers.sequence import Sequence
from streamlearn.cli.options import ConfigFile, load_from_flags
from streamlearn.errors import StreamlearnError

Groups = Literal["explicit", "discovered"]

StreamOption = Annotated[
    str | None,
    typer.Option(
        "--stream",
        "-s",
        metavar="URL",
        help="Where to send it: kafka://host:9092/topic or log:PATH. Default: the log `streamlearn serve` follows.",
    ),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="Where the data set's files are.")]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Passes over each task.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides the order inside each task.")]
Rate = Annotated[float | None, typer.Option("--rate", min=0.001, metavar="N", help="Records per second, at the most.")]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, metavar="N", help="Training pictures, spread evenly over the classes; as many for evaluation."
    ),
]
ClassOrder = Annotated[
    str | None,
    typer.Option(
        "--class-order", metavar="LIST", help="Numbers or names of all classes, such as 9,8,7..., or 'shuffled'."
    ),
]
TasksOption = Annotated[
    str | None,
    typer.Option("--tasks", metavar="N or LIST", help="How many tasks, or the classes of each: 4,3,3."),
]
GroupsOption = Annotated[
    Groups,
    typer.Option(
        "--groups",
        help="explicit: name each task and say when it ends; discovered: leave it to the daemon to notice new classes.",
    ),
]
Evaluate = Annotated[
    bool, typer.Option("--eval/--no-eval", help="After each task, the test pictures of all tasks so far, to be scored.")
]
Again = Annotated[bool, typer.Option("--again", help="Send all of it even if the stream has it already.")]


def run(command: Callable[..., None], name: str) -> None:
    """Run a producer's function as a command: bad options and errors are told in a line, without a traceback."""
    app = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
    )
    app.command()(command)
    try:
        app(prog_name=f"python -m replay_producers.{name}")
    except StreamlearnError as error:
        from streamlearn.cli.app import tell

        tell(error)
        sys.exit(error.exit_code)


def send(
    dataset: DataSet,
    options: Options,
    *,
    stream: str | None,
    config: Path | None,
    rate: float | None,
    again: bool,
) -> None:
    """Produce, and say what came of it."""
    from streamlearn.stream.url import open_stream

    settings = load_from_flags(config, stream).settings
    sequence = Sequence(dataset, options)
    target = open_stream(settings.stream_url, settings.stream)
    say(
        f"{dataset.name} from {dataset.source}: {sequence.examples:,} examples of {len(dataset.classes)} classes "
        f"in {len(sequence.tasks)} tasks, {sequence.evaluations:,} to be scored"
    )
    try:
        stop = StopFlag()
        with stop.heard(), bar(len(sequence), f"{dataset.name} -> {target.url}") as shown:
            done = produce(target, sequence, rate=rate, again=again, stop=stop, tell=shown.at)
    finally:
        target.close()
    total = len(sequence)
    if done.there < total:
        say(
            f"stopped: {done.there:,} of {total:,} records are on {target.url}. "
            f"The same command goes on from there:\n  {_same_command()}",
            "yellow",
        )
        raise typer.Exit(130)
    if done.found == total:
        say(f"all {total:,} records were on {target.url} already; nothing was added (--again sends them once more)")
        return
    earlier = f", {done.found:,} of them from before" if done.found else ""
    pace = (total - done.found) / max(done.seconds, 1e-9)
    say(f"all {total:,} records are on {target.url}{earlier}: {done.seconds:.1f} s, {pace:,.0f}/s", "green")


def _same_command() -> str:
    module = Path(sys.argv[0]).stem
    arguments = [argument for argument in sys.argv[1:] if argument != "--again"]
    return shlex.join(["python", "-m", f"replay_producers.{module}", *arguments])


def command_for(read: Callable[[Path | None], DataSet], about: str) -> Callable[..., None]:
    """The command of a data set that is read from a directory."""

    def command(
        stream: StreamOption = None,
        data_dir: DataDir = None,
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
        options = Options(seed, epochs, limit, class_order, tasks, groups, evaluate)
        send(read(data_dir), options, stream=stream, config=config, rate=rate, again=again)

    command.__doc__ = about
    return command
