"""A bar with a rate on a terminal; elsewhere only the words that matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

console = Console(stderr=True, highlight=False)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "-/s", style="cyan")


class Bar:
    def __init__(self, progress: Progress, total: int, done: int, what: str) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=total, completed=done)

    def at(self, done: int, what: str | None = None) -> None:
        if what is None:
            self._progress.update(self._task, completed=done)
        else:
            self._progress.update(self._task, completed=done, description=what)


@contextmanager
def bar(total: int, what: str, done: int = 0) -> Iterator[Bar]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield Bar(progress, total, done, what)


def say(text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)
