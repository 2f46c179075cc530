"""What the daemon tells: one line per event, for a person on a terminal, as JSON for everything else.

    log = event_logger("stream")
    log.warning("the broker does not answer", url=url, attempt=3)

The message says what happened in words that do not change; what differs from time to time goes into the fields. So
a message that comes again and again can be held back: it is told once in 30 seconds, with how often it was not.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

ROOT: Final = "streamlearn"
REPEAT_SECONDS: Final = 30.0
MASK: Final = "********"
_MOST_MESSAGES: Final = 1000  # remembered for holding back
_COLOURS: Final = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "31"}


class EventLogger:
    """The four levels of logging, with fields by name."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, message: str, /, **fields: object) -> None:
        self._log(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        self._log(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        self._log(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: object) -> None:
        self._log(logging.ERROR, message, fields)

    def crash(self, message: str, error: BaseException, /, **fields: object) -> None:
        """An error nobody foresaw, with its traceback."""
        self._logger.error("%s", message, exc_info=error, extra={"fields": fields})

    def _log(self, level: int, message: str, fields: dict[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", message, extra={"fields": fields})


def event_logger(name: str = "") -> EventLogger:
    return EventLogger(f"{ROOT}.{name}" if name else ROOT)


def configure(
    format: Literal["auto", "human", "json"] = "auto",
    level: Literal["debug", "info", "warning", "error"] = "info",
    *,
    secrets: Sequence[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Once, at the start of a process. `secrets` are taken out of every line, whoever wrote them there."""
    handler = _StandardError() if stream is None else logging.StreamHandler(stream)
    stream = handler.stream
    human = format == "human" or (format == "auto" and stream.isatty())
    handler.setFormatter(_HumanFormatter(secrets, stream.isatty()) if human else _JsonFormatter(secrets))
    handler.addFilter(HoldBackRepeats())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    # Libraries speak up only when something is wrong; their warnings are lines like any other.
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level.upper())
    logging.captureWarnings(True)


class _StandardError(logging.StreamHandler[TextIO]):
    """Wherever standard error leads at the moment: live lines on a terminal catch it, to stay below what is told."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class HoldBackRepeats(logging.Filter):
    """Lets a message through once in `seconds`, and says then how many times it was held back."""

    def __init__(self, seconds: float = REPEAT_SECONDS) -> None:
        super().__init__()
        self._seconds = seconds
        self._told: OrderedDict[tuple[str, int, str], tuple[float, int]] = OrderedDict()  # when last, held back since

    def filter(self, record: logging.LogRecord) -> bool:
        key = (record.name, record.levelno, record.getMessage())
        last, held_back = self._told.get(key, (float("-inf"), 0))
        # A clock set back must not silence a message for as long as it was set back.
        if 0 <= record.created - last < self._seconds:
            self._told[key] = (last, held_back + 1)
            return False
        if held_back:
            record.held_back = held_back
        self._told[key] = (record.created, 0)
        self._told.move_to_end(key)
        if len(self._told) > _MOST_MESSAGES:
            self._told.popitem(last=False)
        return True


class _LineFormatter(logging.Formatter):
    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__()
        self._secrets = [secret for secret in secrets if secret]

    def _fields(self, record: logging.LogRecord) -> dict[str, object]:
        fields: dict[str, object] = dict(getattr(record, "fields", {}))
        if held_back := getattr(record, "held_back", 0):
            fields["repeated"] = held_back
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            fields["traceback"] = self.formatException(record.exc_info)
        return {name: self._without_secrets(value) for name, value in fields.items()}

    def _without_secrets(self, value: object) -> Any:
        """Before it is quoted: a secret with a quotation mark in it looks different afterwards."""
        if value is None or isinstance(value, bool | int | float):
            return value
        text = str(value)
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


class _JsonFormatter(_LineFormatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._without_secrets(record.getMessage()),
        }
        # What every line has comes first, and cannot be overwritten by a field.
        fields = {name: value for name, value in self._fields(record).items() if name not in line}
        return json.dumps(line | fields, ensure_ascii=False)


class _HumanFormatter(_LineFormatter):
    def __init__(self, secrets: Sequence[str], coloured: bool) -> None:
        super().__init__(secrets)
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        shown = f"\x1b[{_COLOURS.get(level, '0')}m{level:<7}\x1b[0m" if self._coloured else f"{level:<7}"
        time = datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S")
        fields = "".join(f"  {name}={_quoted(value)}" for name, value in self._fields(record).items())
        return f"{time} {shown} {one_line(self._without_secrets(record.getMessage()))}{fields}"


def _quoted(value: object) -> str:
    text = one_line(str(value))
    return json.dumps(text, ensure_ascii=False) if not text or " " in text else text


def one_line(text: str) -> str:
    """Nobody outside can start a new line, or paint the terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
