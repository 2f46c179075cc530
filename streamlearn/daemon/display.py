"""A few live lines on the terminal: is it well, how fast, how far behind, what does it know."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamlearn.daemon.status import status

if TYPE_CHECKING:
    from streamlearn.daemon.learning import Learning

REFRESH_SECONDS = 0.5
MOST_GROUPS = 12


class Display:
    """Used as the `tick` of a Learning: draws when it is time to."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._drawn_at = 0.0
        self._seen, self._seen_at, self._rate = 0, time.monotonic(), 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def __call__(self, learning: Learning) -> None:
        now = time.monotonic()
        if learning.stopped or now - self._drawn_at >= REFRESH_SECONDS:
            self._drawn_at = now
            self.draw(learning)

    def draw(self, learning: Learning) -> None:
        now = status(learning)
        self._measure_rate(now["examples_seen"])
        self._live.update(render(now, self._rate), refresh=True)

    def _measure_rate(self, seen: int) -> None:
        now = time.monotonic()
        if now - self._seen_at >= 1.0:
            fresh = (seen - self._seen) / (now - self._seen_at)
            self._rate = fresh if not self._rate else 0.5 * self._rate + 0.5 * fresh
            self._seen, self._seen_at = seen, now


def render(now: dict[str, Any], rate: float | None) -> RenderableType:
    colour = {"learning": "green", "idle": "cyan"}.get(now["state"], "red")
    lag = "?" if now["stream"]["lag"] is None else f"{now['stream']['lag']:,}"
    first = Text.assemble(
        (f" {now['state']} ", f"bold {colour} reverse"),
        f"  {now['examples_seen']:,} examples  {'' if rate is None else f'{rate:,.0f}/s  '}lag {lag}  "
        f"{len(now['classes'])} classes  learning rate {now['learning_rate'] or 0:.2g}  ",
        (f"{now['records_rejected']:,} refused", "yellow" if now["records_rejected"] else "dim"),
    )
    saved = now["checkpoint"]
    ago = f"{max(0, time.time() - saved['at']):.0f} s ago at {saved['examples_seen']:,}" if saved else "none yet"
    buffer = now["buffer"]
    second = Text(
        f" {now['stream']['url']}  buffer {buffer['examples']:,} of {buffer['capacity']:,}  checkpoint {ago}",
        style="dim",
    )
    lines: list[RenderableType] = [first, second]
    if now["reason"]:
        lines.append(Text(f" {now['reason']}", style="bold red"))
    if now["groups"]:
        lines.append(_groups(now["groups"]))
    return Group(*lines)


def _groups(groups: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 1), show_edge=False)
    for heading in ("class group", "accuracy", "", "on the stream", "forgotten"):
        table.add_column(heading, style="dim" if heading == "on the stream" else "")
    for group in groups[-MOST_GROUPS:]:
        held_out, stream = group["accuracy"]["eval"], group["accuracy"]["prequential"]
        best = held_out if held_out is not None else stream
        table.add_row(
            _shortened(", ".join(group["classes"])),
            _percent(best),
            _bar(best),
            _percent(stream),
            _percent(group["forgetting"]),
        )
    if len(groups) > MOST_GROUPS:
        table.add_row(Text(f"and {len(groups) - MOST_GROUPS} older groups", style="dim"))
    return table


def _shortened(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:6.1%}"


def _bar(share: float | None, width: int = 24) -> Text:
    full = round((share or 0) * width)
    return Text.assemble(("━" * full, "green"), ("━" * (width - full), "bright_black"))
