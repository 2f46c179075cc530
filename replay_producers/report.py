"""report.html and the pictures beside it, from whatever results there are. The page needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from replay_producers import figures, paper
from replay_producers.benchmarks import Benchmark
from replay_producers.methods import increments, label
from replay_producers.page import Section, number, page, table
from replay_producers.runs import Result
from replay_producers.summary import Cell, cells_of, find
from replay_producers.times import BARE
from replay_producers.toy import balance
from streamlearn.disk import make_directory, write_file

TOY_REPETITIONS = 1000


def write_report(
    directory: Path,
    benchmark: Benchmark,
    entries: Sequence[Result],
    source: str,
    command: str,
    times: dict[str, Any] | None,
) -> Path:
    """Returns where the page is."""
    cells = cells_of(entries, benchmark.name)
    sections = [section for section in _sections(benchmark, cells, times) if section is not None]
    make_directory(directory)
    for section in sections:
        if section.figure is not None:
            write_file(directory / f"{section.name}.png", [figures.png(section.figure)])
    about = [
        f"Data: {escape(source)}, {cells[0].results[0]['examples']:,} examples learned in each run." if cells else "",
        f"<strong>Reduced</strong>: {escape(benchmark.reduced)}." if benchmark.reduced else "",
        f"The paper: Buzzega et al., <em>{paper.TITLE}</em>; its numbers are means of ten runs.",
        f"Made by <code>{escape(command)}</code>",
    ]
    path = directory / "report.html"
    write_file(path, [page(f"{benchmark.title}, reproduced", about, sections).encode()])
    return path


def _sections(benchmark: Benchmark, cells: Sequence[Cell], times: dict[str, Any] | None) -> list[Section | None]:
    alone = [cell for cell in cells if cell.through == "learner"]
    return [
        _accuracy(cells, alone),
        _increments(benchmark, alone),
        _matrices(alone),
        _through(cells),
        _times(times) if times else None,
        _probability(alone),
        _balance(),
    ]


def _accuracy(cells: Sequence[Cell], alone: Sequence[Cell]) -> Section | None:
    if not cells:
        return None
    rows = [
        [
            label(cell.method),
            f"{cell.buffer:,}" if cell.buffer else "-",
            number(cell.mean),
            number(cell.deviation),
            number(cell.reported),
            number(cell.difference, signed=True),
            str(len(cell.results)),
            number(cell.forgetting),
            f"{cell.seconds:.1f}",
        ]
        for cell in alone or cells
    ]
    heads = ["method", "buffer", "accuracy, %", "std", "paper", "difference", "runs", "forgetting", "seconds"]
    main = [cell for cell in alone or cells if "+" not in cell.method or cell.method == "er+t"]
    return Section(
        "accuracy",
        "Accuracy at the end",
        "Mean over the tasks after the last one was learned. Forgetting is the best a task ever had minus what it has "
        "at the end, over all tasks but the last. Seconds are those of a run among others on the same machine, "
        "evaluations included; for times measured side by side see below.",
        table(heads, rows),
        figures.accuracy(main) if main else None,
    )


def _increments(benchmark: Benchmark, cells: Sequence[Cell]) -> Section | None:
    steps = increments(benchmark)
    rows: dict[int, list[Cell]] = {}
    for buffer in sorted({cell.buffer for cell in cells}):
        found = [cell for step in steps if (cell := find(cells, step, buffer)) is not None]
        if len(found) == len(steps):
            rows[buffer] = found
    if not rows:
        return None
    lines = []
    for place, step in enumerate(steps):
        name = "ER" if not place else f"+ {label(step.split('+')[-1]) if step != 'er+t' else 'LARS'}"
        line = [name]
        for some in rows.values():
            cell = some[place]
            line += [number(cell.mean), number(cell.deviation), number(cell.reported)]
        lines.append(line)
    heads = ["one more each time"]
    for buffer in rows:
        heads += [f"@{buffer:,}", "std", "paper"]
    return Section(
        "increments",
        "One trick at a time",
        "Each row adds one trick to the row above; the last is ER+T. The paper gives this for a buffer of 200.",
        table(heads, lines),
        figures.increments(rows),
    )


def _matrices(cells: Sequence[Cell]) -> Section | None:
    buffers = sorted({cell.buffer for cell in cells if cell.buffer})
    shown = [cell for cell in cells if cell.matrix() and _is_main(cell) and cell.buffer in (0, *buffers[:1])]
    if not shown:
        return None
    return Section(
        "matrix",
        "What is known after each task",
        "A row for each task learned, a column for each task tested, mean over the runs. What fades down a column is "
        "forgotten. Joint training learns everything anew at the end of each task.",
        "",
        figures.matrices(sorted(shown, key=_rank)),
    )


def _is_main(cell: Cell) -> bool:
    return "+" not in cell.method or cell.method == "er+t"


def _rank(cell: Cell) -> int:
    order = ["sgd", "er", "er+t", "joint"]
    return order.index(cell.method) if cell.method in order else len(order)


def _through(cells: Sequence[Cell]) -> Section | None:
    """The same run through the learner alone and through a daemon: each digit, and how fast."""
    rows = []
    for cell in cells:
        alone = find(cells, cell.method, cell.buffer)
        if cell.through == "learner" or alone is None:
            continue
        for result in cell.results:
            same = [one for one in alone.results if (one["seed"], one["setup"]) == (result["seed"], result["setup"])]
            for one in same:
                rows.append(
                    [
                        label(cell.method) + (f" @{cell.buffer:,}" if cell.buffer else ""),
                        str(result["seed"]),
                        cell.through,
                        repr(result["accuracy"]),
                        repr(one["accuracy"]),
                        "yes" if result["accuracy_by_group"] == one["accuracy_by_group"] else "NO",
                        f"{result['seconds']:.1f}",
                        f"{one['seconds']:.1f}",
                        f"{100 * one['seconds'] / result['seconds']:.0f} %",
                    ]
                )
    if not rows:
        return None
    heads = ["run", "seed", "through", "accuracy", "learner alone", "equal", "seconds", "learner alone", "speed"]
    return Section(
        "through",
        "Through a running daemon",
        "The producer fed a stream, `streamlearn serve` followed it, and its held-out records were scored by it. Both "
        "times include the evaluations; what else ran on the machine may have differed.",
        table(heads, rows),
        None,
    )


def _times(times: dict[str, Any]) -> Section:
    bare = times["seconds"][BARE]
    rows = [
        [label(name) if name != BARE else "bare torch loop (10 + 32 examples a step)", f"{seconds:.2f}",
         f"{seconds / bare:.2f}"]
        for name, seconds in sorted(times["seconds"].items(), key=lambda item: float(item[1]))
    ]  # fmt: skip
    rows += [[f"{name} (measured before, on two other cores of 2.8 GHz)", f"{low:.0f} to {high:.0f}", ""]
             for name, (low, high) in paper.PEERS.items()]  # fmt: skip
    return Section(
        "times",
        "How long it takes",
        f"Learning only, {times['examples']:,} examples, buffer {times['buffer']}, one thread. All measured in the "
        "same minutes, in turns of a few hundred examples. The bare loop does nothing but forward, backward and step "
        "over batches that are ready in memory.",
        table(["", "seconds", "times the bare loop"], rows),
        figures.times(times),
    )


def _probability(cells: Sequence[Cell]) -> Section | None:
    buffers = sorted({cell.buffer for cell in cells if cell.buffer})
    shown = [c for c in cells if c.task_probability() and _is_main(c) and c.buffer in (0, *buffers[:1])]
    if not shown:
        return None
    return Section(
        "task_probability",
        "How likely each task is to be named",
        "The probability of each class over all test pictures, summed by task. Every task has as many pictures, so an "
        "unbiased learner names each as often (dashed).",
        "",
        figures.task_probability(sorted(shown, key=_rank)),
    )


def _balance() -> Section:
    found = {eviction: balance(eviction, TOY_REPETITIONS) for eviction in ("reservoir", "brs")}
    return Section(
        "balance",
        "Balance of the buffer",
        f"The paper's toy: 1,020 items of six classes, mixed, offered to a buffer of twelve, "
        f"{TOY_REPETITIONS:,} times. Two of each class would be ideal.",
        "",
        figures.balance(found),
    )
