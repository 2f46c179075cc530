"""One line per event, repeats held back, no secrets and no line breaks from outside."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from streamlearn.logs import MASK, HoldBackRepeats, configure, event_logger


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _put_back_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("streamlearn").setLevel(logging.NOTSET)
    logging.captureWarnings(False)


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_json_where_nobody_looks() -> None:
    out = io.StringIO()
    configure(stream=out)
    event_logger("stream").warning("the broker is away", attempt=3, url="kafka://x", level="mine")
    (line,) = lines(out)
    assert line["time"].endswith("Z")
    del line["time"]
    expected = {"level": "warning", "logger": "streamlearn.stream", "message": "the broker is away"}
    assert line == expected | {"attempt": 3, "url": "kafka://x"}


def test_people_on_a_terminal() -> None:
    out = Terminal()
    configure(stream=out)
    event_logger().info("checkpoint saved", number=7, took="0.1 s")
    assert out.getvalue().endswith('checkpoint saved  number=7  took="0.1 s"\n')
    assert "\x1b[32minfo" in out.getvalue()
    plain = io.StringIO()
    configure("human", stream=plain)
    event_logger().info("checkpoint saved")
    assert "\x1b" not in plain.getvalue()


def test_what_comes_from_outside_stays_on_its_line() -> None:
    out = io.StringIO()
    configure("human", stream=out)
    event_logger().info("bad\nrecord", label="a\x1b[31m\r\nb")
    assert out.getvalue().count("\n") == 1
    assert "\x1b" not in out.getvalue()


def test_levels() -> None:
    out = io.StringIO()
    configure("json", "warning", stream=out)
    log = event_logger()
    log.debug("1")
    log.info("2")
    log.warning("3")
    log.error("4")
    logging.getLogger("kafka").info("not ours, not wrong")
    assert [line["message"] for line in lines(out)] == ["3", "4"]


def test_an_unforeseen_error_keeps_its_traceback_in_one_line() -> None:
    for format in ("human", "json"):
        out = io.StringIO()
        configure(format, stream=out)  # type: ignore[arg-type]
        try:
            {}["x"]
        except KeyError as error:
            event_logger().crash("learning failed", error)
        assert out.getvalue().count("\n") == 1
        assert "KeyError: 'x'" in out.getvalue()
        assert "test_logs.py" in out.getvalue()


def test_secrets_are_taken_out_wherever_they_are() -> None:
    out = io.StringIO()
    configure("json", stream=out, secrets=['hun"ter2', ""])
    event_logger().error('refused hun"ter2', header='Bearer hun"ter2')
    (line,) = lines(out)
    assert line["message"] == f"refused {MASK}"
    assert line["header"] == f"Bearer {MASK}"


def test_warnings_are_lines_too() -> None:
    out = io.StringIO()
    configure("json", stream=out)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert "old" in lines(out)[0]["message"]


def record(message: str, at: float) -> logging.LogRecord:
    made = logging.LogRecord("streamlearn", logging.WARNING, "", 0, "%s", (message,), None)
    made.created = at
    return made


def test_repeats_are_held_back_and_counted() -> None:
    hold_back = HoldBackRepeats(30)
    told = []
    for second in range(0, 91):
        for message in ("away", "full"):
            one = record(message, 1000.0 + second)
            if hold_back.filter(one):
                told.append((second, message, getattr(one, "held_back", 0)))
    assert [one for one in told if one[1] == "away"] == [
        (0, "away", 0),
        (30, "away", 29),
        (60, "away", 29),
        (90, "away", 29),
    ]


def test_a_clock_set_back_silences_nothing() -> None:
    hold_back = HoldBackRepeats(30)
    assert hold_back.filter(record("away", 10_000.0))
    assert hold_back.filter(record("away", 5.0))


def test_endlessly_many_messages_fill_no_memory() -> None:
    hold_back = HoldBackRepeats(30)
    for number in range(5000):
        assert hold_back.filter(record(f"message {number}", 1000.0))
    assert len(hold_back._told) <= 1000
