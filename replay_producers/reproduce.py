"""The paper's comparisons: run them, keep every result as it comes, and show them beside the paper's numbers."""

from __future__ import annotations

import json
import shlex
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replay_producers.benchmarks import BENCHMARKS, benchmark_named, dataset_of
from replay_producers.command import DataDir, Limit, run
from replay_producers.methods import buffers_for, label, methods_named
from replay_producers.progress import bar, say
from streamlearn.disk import make_directory, write_file
from streamlearn.errors import SettingsError, StreamlearnError

if TYPE_CHECKING:
    from replay_producers.results import Results
    from replay_producers.runs import Result, Run

DatasetOption = Annotated[str, typer.Option("--dataset", metavar="NAME", help=f"One of {', '.join(BENCHMARKS)}.")]
Methods = Annotated[
    str,
    typer.Option(
        "--methods",
        metavar="LIST",
        help="sgd, joint, er, er+t and the other methods of the learner; er with tricks such as er+bic+elrd; "
        "increments for the whole row from er to er+t.",
    ),
]
Buffers = Annotated[str, typer.Option("--buffers", metavar="LIST", help="Sizes of the replay buffer.")]
Seeds = Annotated[int, typer.Option("--seeds", min=1, help="Runs of each, with the seeds 0, 1, 2, ...")]
Through = Annotated[
    str,
    typer.Option(
        "--through",
        metavar="WHAT",
        help="learner: the learner alone, fastest. log or kafka://host:9092/prefix: a real daemon for each run, fed "
        "by the producer; the accuracy is the same.",
    ),
]
EpochsOption = Annotated[
    int | None, typer.Option("--epochs", min=1, help="Passes over each task, if not as many as the paper makes.")
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where results.json, report.html and pictures go.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Runs at once. Default: one for each core; half with a daemon.")
]
Times = Annotated[
    bool, typer.Option("--times/--no-times", help="At the end, how long each method takes beside a bare torch loop.")
]


def command(
    dataset: DatasetOption = "split-fashion-mnist",
    methods: Methods = "er,er+t",
    buffers: Buffers = "200,500,1000",
    seeds: Seeds = 10,
    through: Through = "learner",
    data_dir: DataDir = None,
    epochs: EpochsOption = None,
    limit: Limit = None,
    out: Out = Path("reproduction"),
    jobs: Jobs = None,
    times: Times = True,
) -> None:
    """Reproduce the paper's comparisons, and put the results beside its numbers in DIR/report.html.

    Every result is kept in DIR/results.json as soon as its run ends: after an interruption the same command goes on
    where it was. Without --data-dir, Fashion-MNIST is the small sample that ships with streamlearn.
    """
    benchmark = benchmark_named(dataset)
    chosen = methods_named(methods, benchmark)
    sizes = _sizes(buffers)
    _check_through(through)
    source = dataset_of(benchmark.name, data_dir)

    # Only now: what can be said about the options is said before torch and the rest take their seconds to load.
    from replay_producers.parallel import cores
    from replay_producers.report import write_report
    from replay_producers.results import Results
    from replay_producers.runs import runs_of

    runs = runs_of(
        benchmark,
        [(method, buffers_for(method, sizes)) for method in chosen],
        seeds,
        epochs or benchmark.epochs,
        limit or benchmark.limit,
        data_dir,
        through,
    )
    results = Results(out)
    left = results.left(runs)
    say(
        f"{benchmark.title} from {source.source}: {len(runs)} runs"
        + (f", {len(runs) - len(left)} of them done before" if len(left) < len(runs) else "")
    )
    if benchmark.reduced:
        say(f"reduced: {benchmark.reduced}")
    jobs = min(jobs or (cores() if through == "learner" else max(1, cores() // 2)), max(1, len(left)))
    failures = _run_all(left, results, jobs)
    timed = _times(benchmark.name, through, data_dir, limit, out, anew=bool(left)) if times else None
    page = write_report(out, benchmark, results.entries, source.source, _same_command(), timed)
    say(f"report: {page}", "green")
    if failures:
        raise StreamlearnError(f"{len(failures)} of {len(runs)} runs failed: {failures[0]}", "the others are kept")


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise SettingsError([f"--buffers {text!r}: expected numbers such as 200,500,1000"])
    return list(dict.fromkeys(sizes))


def _check_through(through: str) -> None:
    if through in ("learner", "log"):
        return
    if not through.startswith("kafka://"):
        raise SettingsError([f"--through {through!r}: expected learner, log or kafka://host:9092/prefix"])
    from streamlearn.stream.url import parse_url

    parse_url(through)


def _run_all(left: Sequence[Run], results: Results, jobs: int) -> list[str]:
    """Raises typer.Exit when somebody stops it."""
    from replay_producers.parallel import outcomes

    failures: list[str] = []
    started, done = time.monotonic(), 0
    before = signal.signal(signal.SIGTERM, _interrupt)
    with bar(len(left), f"{jobs} at once") as shown, closing(outcomes(left, jobs)) as ending:
        try:
            for run_, result in ending:
                done += 1
                if isinstance(result, str):
                    failures.append(f"{run_.described()}: {result}")
                    say(failures[-1], "red")
                else:
                    results.add(result)
                    say(f"{run_.described():<28} {result['accuracy']:6.2f} %  {result['seconds']:6.1f} s")
                shown.at(done)
        except KeyboardInterrupt:
            say(
                f"stopped: {len(results.entries)} results are in {results.path}. The same command goes on from there:\n"
                f"  {_same_command()}",
                "yellow",
            )
            raise typer.Exit(130) from None
        finally:
            signal.signal(signal.SIGTERM, before)
    if done:
        say(f"{done} runs in {time.monotonic() - started:.0f} s")
        for line in _summary(results.entries):
            say(line)
    return failures


def _times(
    benchmark: str, through: str, data_dir: Path | None, limit: int | None, out: Path, *, anew: bool
) -> dict[str, Any] | None:
    """Measured when nothing else runs any more, and kept: only new runs are a reason to measure again."""
    from replay_producers import times

    path = out / "times.json"
    if path.is_file() and not (anew and through == "learner" and benchmark == times.BENCHMARK):
        with suppress(ValueError):
            return dict(json.loads(path.read_text()))
    if benchmark != times.BENCHMARK:
        return None
    measured = times.measure(data_dir, limit)
    make_directory(out)
    write_file(path, [json.dumps(measured, indent=1).encode()])
    return measured


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _summary(entries: Sequence[Result]) -> list[str]:
    found: dict[tuple[str, int, str], list[float]] = {}
    for entry in entries:
        found.setdefault((entry["method"], entry["buffer"], entry["through"]), []).append(entry["accuracy"])
    return [
        f"{label(method)}{f' @{buffer}' if buffer else ''} through {through}: {statistics.mean(values):.2f} % "
        f"({len(values)} runs)"
        for (method, buffer, through), values in found.items()
    ]


def _same_command() -> str:
    return shlex.join(["python", "-m", "replay_producers.reproduce", *sys.argv[1:]])


if __name__ == "__main__":
    run(command, "reproduce")
