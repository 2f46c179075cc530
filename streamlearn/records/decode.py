"""Record -> Example or Event, or BadRecord with the reason. The only thing a stream can do to the daemon is this.

Runs for every record inside the loop that learns, so the common case, an array with the headers of the record before,
does little: look up what the headers mean, look at the length, wrap the bytes (no copy).
"""

from __future__ import annotations

import numpy as np

from streamlearn.records.headers import (
    FLOAT32,
    JSON,
    NAMES,
    OCTETS,
    Kind,
    Meaning,
    header_text,
    kind_named,
    split_named,
    understand,
)
from streamlearn.records.json_body import body_id, body_input, body_text, parse_body
from streamlearn.records.pictures import decode_picture
from streamlearn.records.reasons import REASONS, Reason, refused
from streamlearn.records.record import Array, Event, Example, Headers, Record
from streamlearn.settings.limits import Limits

__all__ = ["REASONS", "Decoder", "Limits", "Reason"]

_MOST_REMEMBERED = 2048  # of each cache; a hostile stream makes the cache useless, not large
_LONGEST_WORD = 64


class Decoder:
    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._meanings: dict[Headers, Meaning] = {}
        self._labels: dict[bytes, str] = {}
        self._before: Headers = ()  # what the last record's headers said beside label and id,
        self._meaning = understand((), self.limits)  # and what it means

    def decode(self, record: Record) -> Example | Event:
        """The arrays are read-only views of the record's bytes where that is possible."""
        value = record.value
        if len(value) > self.limits.record_bytes:
            raise refused("too-large", f"{len(value):,} bytes; at most {self.limits.record_bytes:,} are allowed")

        headers, before = record.headers, self._before
        # Most records begin with the very headers of the one before, and only label and id come after them.
        if headers[: len(before)] == before:
            headers, others = headers[len(before) :], before
        else:
            others = ()
        raw_label = raw_id = None
        for header in headers:
            name = header[0]
            if name == "label":
                raw_label = header[1]
            elif name == "id":
                raw_id = header[1]
            elif name in NAMES:  # others, such as trace ids, are not ours and differ in every record
                others = (*others, header)
        if others is before:
            meaning = self._meaning
        else:
            meaning = self._meanings.get(others) or self._remember_meaning(others)
            self._before, self._meaning = others, meaning

        if meaning.kind == "end-of-group" or meaning.kind == "flush":
            return Event(meaning.kind)
        if not value:
            raise refused("empty", "the record has no value")
        label = None if raw_label is None else self._labels.get(raw_label) or self._remember_label(raw_label)
        if meaning.content_type == JSON:
            return self._decode_json(record, meaning, label, raw_id)
        if label is None:
            raise refused("no-label", "the record has no label header")
        return Example(
            _array(value, meaning) if meaning.content_type == OCTETS else decode_picture(value, self.limits),
            label,
            self._id(raw_id, record.key),
            meaning.group,
            meaning.split or "train",
        )

    def _decode_json(
        self, record: Record, meaning: Meaning, label: str | None, raw_id: bytes | None
    ) -> Example | Event:
        """The body says what the headers do not, so that a console producer is enough."""
        body, limits = parse_body(record.value), self.limits
        if meaning.kind is None:
            kind = body_text(body, "event", _LONGEST_WORD, "unknown-event")
            named: Kind = "example" if kind is None else kind_named(kind)
            if named != "example":
                return Event(named)
        if label is None:
            label = body_text(body, "label", limits.label_bytes, "bad-label")
        if label is None:
            raise refused("no-label", "the record has a label neither in its headers nor in its body")
        if not label:
            raise refused("bad-label", "the label is empty")
        split = body_text(body, "split", _LONGEST_WORD, "bad-split")
        return Example(
            body_input(body, meaning.shape, meaning.dtype, limits),
            label,
            (body_id(body, limits.id_bytes) if not raw_id else None) or self._id(raw_id, record.key),
            meaning.group or body_text(body, "group", limits.group_bytes) or None,
            meaning.split or (split_named(split) if split is not None else "train"),
        )

    def _id(self, raw_id: bytes | None, key: bytes | None) -> str | None:
        if raw_id:
            return header_text("id", raw_id, self.limits.id_bytes)
        if not key:
            return None
        if len(key) > self.limits.id_bytes:
            raise refused("bad-header", f"the key, its id, has {len(key):,} bytes; {self.limits.id_bytes} are allowed")
        try:
            return key.decode()
        except UnicodeDecodeError:
            return key.hex()  # a number or a UUID in binary is a good key, and an id must be text to be asked for

    def _remember_meaning(self, headers: Headers) -> Meaning:
        meaning = understand(headers, self.limits)
        if len(self._meanings) >= _MOST_REMEMBERED:
            self._meanings.clear()
        self._meanings[headers] = meaning
        return meaning

    def _remember_label(self, raw: bytes) -> str:
        label = header_text("label", raw, self.limits.label_bytes, "bad-label")
        if not label:
            raise refused("bad-label", "the label is empty")
        if len(self._labels) >= _MOST_REMEMBERED:
            self._labels.clear()
        self._labels[raw] = label
        return label


def _array(value: bytes, meaning: Meaning) -> Array:
    if meaning.shape is None:
        raise refused("bad-shape", "an octet-stream needs the header shape, such as 28,28")
    if len(value) != meaning.array_bytes:
        raise refused("bad-shape", f"shape and dtype ask for {meaning.array_bytes:,} bytes; there are {len(value):,}")
    if meaning.dtype != "float32":
        return np.frombuffer(value, np.uint8).reshape(meaning.shape)
    floats = np.frombuffer(value, FLOAT32).reshape(meaning.shape)
    if not np.isfinite(floats).all():
        raise refused("not-finite", "the array holds NaN or infinity")
    return floats
