"""Imports go down only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "streamlearn"

# From the bottom up. A module may import from its own room and from rooms below.
ROOMS = [
    {"errors", "version"},
    {"settings"},
    {"records", "sample"},
    {"learner"},
    {
        "stream",
        "checkpoint",
        "disk",
        "lock",
        "logs",
        "weights",
        "snapshot",
        "accuracy",
        "metrics",
        "export",
        "run_folder",
    },
    {"serving"},
    {"daemon"},
    {"bench"},
    {"cli", "__init__"},
    {"__main__"},
]
HEIGHT = {room: height for height, rooms in enumerate(ROOMS) for room in rooms}

# What the learner must not know: the outside world.
WORLD = {
    "kafka",
    "http",
    "socket",
    "pathlib",
    "os",
    "io",
    "time",
    "datetime",
    "logging",
    "prometheus_client",
    "sqlite3",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    own = room(path)
    assert own in HEIGHT, f"{own} has no place among the rooms"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "replay_producers":
            pytest.fail(f"{path} imports {name}: producers use the package, not the other way round")
        if parts[0] == "streamlearn" and len(parts) > 1 and parts[1] in HEIGHT and parts[1] != own:
            assert HEIGHT[parts[1]] < HEIGHT[own] or _same_edge(own, parts[1]), (
                f"{path} imports {name}, which is not below"
            )


def _same_edge(own: str, other: str) -> bool:
    """Edges may share the smallest of their helpers."""
    return (own, other) in {
        ("checkpoint", "disk"),
        ("snapshot", "disk"),
        ("stream", "disk"),
        ("lock", "disk"),
        ("run_folder", "disk"),
    }


@pytest.mark.parametrize("path", sorted((PACKAGE / "learner").rglob("*.py")), ids=lambda path: path.name)
def test_the_learner_knows_nothing_of_the_world(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & WORLD
