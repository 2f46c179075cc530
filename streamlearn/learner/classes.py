"""Which classes are known, which output each has, and the class groups they arrived in."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(slots=True)
class ClassGroup:
    """Classes that arrived together."""

    name: str
    opened_at: int  # examples seen when its first class turned up
    classes: list[int] = field(default_factory=list)  # outputs, in order of arrival


class ClassTable:
    """A class keeps its output for ever. Declared classes have one from the start, but are known only once seen."""

    def __init__(self, declared: Sequence[str], span: int) -> None:
        self.names: list[str] = list(declared)  # of each output
        self.index: dict[str, int] = {}  # known classes -> output
        self.groups: list[ClassGroup] = []
        self.current = -1  # the place of the group that took the newest class
        self.closed = True  # whether that group has ended
        self._reserved = {name: output for output, name in enumerate(declared)}
        self._span = span

    @property
    def known(self) -> list[int]:
        """The outputs of the classes seen so far, in ascending order."""
        return sorted(self.index.values())

    def opens_group(self, name: str, group: str | None, seen: int) -> bool:
        """Whether this class, if it is new, begins another group than the current one."""
        if name in self.index:
            return False
        if self.closed:
            return True
        if group is not None:
            return group != self.groups[self.current].name
        return seen - self.groups[self.current].opened_at > self._span

    def add(self, name: str, group: str | None, seen: int) -> None:
        """A class is seen for the first time."""
        if self.opens_group(name, group, seen):
            self._open(group, seen)
        output = self._reserved.get(name, len(self.names))
        if output == len(self.names):
            self.names.append(name)
        self.index[name] = output
        self.groups[self.current].classes.append(output)

    def _open(self, name: str | None, seen: int) -> None:
        places = {group.name: place for place, group in enumerate(self.groups)}
        if name in places:  # the caller goes back to a group it named before
            self.current = places[name]
        else:
            number = len(self.groups) + 1
            while name is None or name in places:
                name, number = f"group-{number}", number + 1
            self.groups.append(ClassGroup(name, seen))
            self.current = len(self.groups) - 1
        self.closed = False

    def group_names(self) -> dict[str, str]:
        """Known class -> the name of its group."""
        return {self.names[output]: group.name for group in self.groups for output in group.classes}

    def copy(self) -> Self:
        return copy.deepcopy(self)

    def state_dict(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "groups": [
                {"name": group.name, "opened_at": group.opened_at, "classes": list(group.classes)}
                for group in self.groups
            ],
            "current": self.current,
            "closed": self.closed,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.names = list(state["names"])
        self.groups = [ClassGroup(g["name"], g["opened_at"], list(g["classes"])) for g in state["groups"]]
        self.index = {self.names[output]: output for group in self.groups for output in group.classes}
        self.current, self.closed = state["current"], state["closed"]
