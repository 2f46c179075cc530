"""What subscribers are told."""

from __future__ import annotations

from typing import Any

from streamlearn.daemon.events import KEPT, Events


def test_the_frequent_push_out_none_of_the_rare() -> None:
    events, told = Events(), list[dict[str, Any]]()
    events.add("dead-letter", {"offset": 7})
    for version in range(3 * KEPT):
        events.add("snapshot", {"version": version})
    events.add("new-class", {"label": "boot"})
    events.subscribe(told.append, 0)
    assert [event["event"] for event in told] == ["dead-letter", *["snapshot"] * KEPT, "new-class"]
    assert [event["number"] for event in told] == sorted(event["number"] for event in told)
    assert told[-2]["data"] == {"version": 3 * KEPT - 1}


def test_only_what_was_missed_and_what_comes() -> None:
    events, told, fresh = Events(), list[dict[str, Any]](), list[dict[str, Any]]()
    events.add("flush", {})
    events.subscribe(told.append, 0)
    events.add("paused", {})
    events.subscribe(fresh.append, None)
    events.add("resumed", {})
    assert [event["event"] for event in told] == ["flush", "paused", "resumed"]
    assert [event["event"] for event in fresh] == ["resumed"]
    late: list[dict[str, Any]] = []
    events.subscribe(late.append, told[0]["number"])
    assert [event["event"] for event in late] == ["paused", "resumed"]
