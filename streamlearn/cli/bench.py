"""`streamlearn bench`: how fast is this machine?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamlearn.bench.names import ALL
from streamlearn.errors import SettingsError

if TYPE_CHECKING:
    from rich.table import Table

    from streamlearn.bench.figures import Figure


def bench(
    kafka: Annotated[
        str | None,
        typer.Option(
            "--kafka", help="Measure through Kafka, too: kafka://host:9092/topic (a topic of its own is made)."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures to this file.", metavar="FILE")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", help=f"Some figures only, of {', '.join(ALL)}.", metavar="NAME,...")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Processor threads that torch may use.")] = 1,
) -> None:
    """Measure how fast this machine learns, follows a stream, saves and serves.

    Each figure stands beside a yardstick taken in turns with it, on the sample that ships with the project.
    """
    wanted = set(ALL) - ({"kafka_vs_learner"} if kafka is None else set()) if only is None else set(only.split(","))
    if unknown := sorted(wanted - set(ALL)):
        raise SettingsError([f"--only: there is no figure {name!r}" for name in unknown], f"there are {', '.join(ALL)}")
    if "kafka_vs_learner" in wanted and kafka is None:
        raise SettingsError(["--only: kafka_vs_learner needs a broker"], "give --kafka kafka://host:9092/topic")

    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console()
    figures: list[Figure] = []
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        line = progress.add_task("starting", total=None)
        import torch

        from streamlearn.bench.benches import benches

        torch.set_num_threads(threads)
        for names, measure in benches(kafka).items():
            if wanted & set(names):
                progress.update(line, description=f"measuring {', '.join(names)}")
                figures += [figure for figure in measure() if figure.name in wanted]
    console.print(_table(figures))
    if json_file is not None:
        json_file.write_text(json.dumps([figure.as_dict() for figure in figures], indent=2) + "\n")


def _table(figures: list[Figure]) -> Table:
    from rich.table import Table

    table = Table("figure", "value", "yardstick", "its value", "ratio")
    for figure in figures:
        table.add_row(
            figure.name,
            f"{_number(figure.value)} {figure.unit}",
            figure.yardstick or "",
            "" if figure.yardstick_value is None else f"{_number(figure.yardstick_value)} {figure.unit}",
            "" if figure.ratio is None else f"{figure.ratio:.3f}",
        )
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
