"""The pictures of the report, each drawn once and kept as PNG (a file) and SVG (inside the page)."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay_producers import paper
from replay_producers.methods import label
from replay_producers.summary import Cell
from replay_producers.toy import CLASSES, IDEAL, Balance

P = ParamSpec("P")

_COLOURS = {"sgd": "#b0b7c3", "joint": "#56637a", "er": "#e8963e", "er+t": "#2166ac", "bare loop": "#999999"}
_STEPS = ("#e8963e", "#d7b04a", "#9bbb62", "#5aa889", "#3a86a8", "#2166ac")  # from er to er+t
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "svg.hashsalt": "streamlearn",  # the same results, the same bytes
}


def colour(method: str) -> str:
    return _COLOURS.get(method, "#8c6bb1")


def _styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with matplotlib.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return drawn


def _figure(width: float, height: float, columns: int = 1, **more: Any) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False, **more)[0])


def png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130, facecolor="white")
    return out.getvalue()


def svg(figure: Figure) -> str:
    out = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


@_styled
def accuracy(cells: Sequence[Cell]) -> Figure:
    """Every method at every buffer, with the paper's number as a mark across the bar."""
    buffers = sorted({cell.buffer for cell in cells if cell.buffer})
    with_buffer = list(dict.fromkeys(cell.method for cell in cells if cell.buffer))
    figure, (axes,) = _figure(7.2, 3.4)
    width = 0.8 / max(1, len(with_buffer))
    for place, method in enumerate(with_buffer):
        for group, buffer in enumerate(buffers):
            for cell in cells:
                if (cell.method, cell.buffer) == (method, buffer):
                    at = group + (place - (len(with_buffer) - 1) / 2) * width
                    name = label(method) if group == 0 else None
                    shade = _STEPS[place % len(_STEPS)] if len(with_buffer) > 2 else colour(method)
                    axes.bar(at, cell.mean, width * 0.92, yerr=cell.deviation, color=shade, label=name, capsize=2)
                    _mark(axes, at, width, cell.reported)
    for cell in cells:
        if not cell.buffer:
            axes.axhline(cell.mean, color=colour(cell.method), linestyle="--", label=f"{label(cell.method)}")
    axes.plot([], [], color="black", linewidth=1.6, label="the paper")
    axes.set_xticks(range(len(buffers)), [f"buffer {buffer:,}" for buffer in buffers])
    axes.set_ylabel("accuracy, %")
    axes.set_ylim(0, 100)
    axes.legend(ncols=1, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _mark(axes: Axes, at: float, width: float, value: float | None) -> None:
    if value is not None:
        axes.plot([at - width * 0.46, at + width * 0.46], [value, value], color="black", linewidth=1.6)


@_styled
def increments(rows: dict[int, list[Cell]]) -> Figure:
    """One trick more with each bar, a panel for each buffer."""
    figure, panels = _figure(2.9 * len(rows) + 0.6, 3.2, len(rows), sharey=True)
    base = max(0.0, min(cell.mean for cells in rows.values() for cell in cells) - 12)
    for axes, (buffer, cells) in zip(panels, rows.items(), strict=True):
        for place, cell in enumerate(cells):
            axes.bar(place, cell.mean, 0.72, yerr=cell.deviation, color=_STEPS[place * 5 // max(1, len(cells) - 1)],
                     capsize=3)  # fmt: skip
            axes.annotate(f"{cell.mean:.1f}", (place, base), (0, 4), textcoords="offset points", ha="center",
                          color="white", weight="bold")  # fmt: skip
            _mark(axes, place, 0.76, cell.reported)
        names = ["ER", *(f"+ {label(cell.method.split('+')[-1])}" for cell in cells[1:-1]), "+ LARS"]
        axes.set_xticks(range(len(cells)), names, rotation=30)
        axes.set_title(f"buffer {buffer:,}", fontsize=9)
    panels[0].set_ylim(base, None)
    panels[0].set_ylabel("accuracy, %")
    if any(cell.reported is not None for cells in rows.values() for cell in cells):
        panels[0].plot([], [], color="black", linewidth=1.6, label="the paper")
        panels[0].legend(frameon=False, loc="upper left")
    return figure


@_styled
def matrices(cells: Sequence[Cell]) -> Figure:
    """How well each task is known after each: the diagonal is fresh, what lies below it has been forgotten."""
    figure, panels = _figure(2.3 * len(cells) + 0.8, 2.7, len(cells))
    image = None
    for axes, cell in zip(panels, cells, strict=True):
        rows = cell.matrix() or []
        size = len(rows)
        full = [row + [float("nan")] * (size - len(row)) for row in rows]
        image = axes.imshow(full, vmin=0, vmax=100, cmap="YlGnBu")
        axes.grid(False)
        if size <= 6:
            for row, values in enumerate(rows):
                for column, value in enumerate(values):
                    axes.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=7,
                              color="white" if value > 60 else "black")  # fmt: skip
        axes.set_xticks(range(size), [str(number) for number in range(1, size + 1)])
        axes.set_yticks(range(size), [str(number) for number in range(1, size + 1)])
        axes.set_title(label(cell.method) + (f" @{cell.buffer:,}" if cell.buffer else ""), fontsize=9)
        axes.set_xlabel("task")
    panels[0].set_ylabel("after learning task")
    if image is not None:
        figure.colorbar(image, ax=panels, shrink=0.8, label="accuracy, %")
    return figure


@_styled
def balance(found: dict[str, Balance]) -> Figure:
    figure, panels = _figure(6.4, 2.7, len(found), sharey=True)
    names = {"reservoir": "Reservoir", "brs": "Balanced (BRS)"}
    for axes, (eviction, one) in zip(panels, found.items(), strict=True):
        shade = _COLOURS["er"] if eviction == "reservoir" else _COLOURS["er+t"]
        axes.bar(range(1, CLASSES + 1), one.mean, yerr=one.deviation, color=shade, capsize=4)
        axes.axhline(IDEAL, color="black", linestyle="--", linewidth=1)
        reported = paper.TOY_ERRORS[eviction]
        axes.set_title(f"{names[eviction]}: error {one.error:.2f} (paper {reported})", fontsize=9)
        axes.set_xlabel("class")
    panels[0].set_ylabel("items kept of twelve")
    return figure


@_styled
def task_probability(cells: Sequence[Cell]) -> Figure:
    figure, (axes,) = _figure(6.4, 2.9)
    width = 0.8 / max(1, len(cells))
    tasks = 0
    for place, cell in enumerate(cells):
        chances = cell.task_probability() or []
        tasks = len(chances)
        at = [task + (place - (len(cells) - 1) / 2) * width for task in range(tasks)]
        name = label(cell.method) + (f" @{cell.buffer:,}" if cell.buffer else "")
        axes.bar(at, chances, width * 0.92, color=colour(cell.method), label=name)
    if tasks:
        axes.axhline(1 / tasks, color="black", linestyle="--", linewidth=1)
    axes.set_xticks(range(tasks), [f"task {number}" for number in range(1, tasks + 1)])
    axes.set_ylabel("probability of being named")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


@_styled
def times(measured: dict[str, Any]) -> Figure:
    figure, (axes,) = _figure(6.4, 2.6)
    names = sorted(measured["seconds"], key=lambda name: measured["seconds"][name], reverse=True)
    for row, name in enumerate(names):
        left = 0.0
        for number, seconds in enumerate(measured["seconds_by_task"][name]):
            axes.barh(row, seconds, left=left, color=colour(name), alpha=1.0 - 0.14 * (number % 5), edgecolor="white")
            left += seconds
        axes.text(left, row, f"  {left:.1f} s", va="center")
    axes.set_yticks(range(len(names)), [label(name) if name != "bare loop" else "bare torch loop" for name in names])
    axes.set_xlabel(f"seconds of learning, {measured['examples']:,} examples, task by task")
    axes.margins(x=0.12)
    axes.grid(axis="y", visible=False)
    return figure
