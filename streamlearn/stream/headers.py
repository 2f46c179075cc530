"""Headers as one blob of the embedded log, made to be taken apart quickly.

Usual form:  names joined by 0x01, then every value, all joined by 0x00:  b"label\\x01id\\x00boot\\x0017"
Other form:  0xff, then JSON pairs of name and base64 value, for names or values that hold a separator.

Records of one producer have the same names, so the names are decoded once and looked up afterwards; one `split` finds
the values. UTF-8 never holds 0xff, so the two forms cannot be mistaken for each other.
"""

from __future__ import annotations

import base64
import json

from streamlearn.records.record import Headers

OTHER_FORM = b"\xff"
# Producers use a handful of sets of names; whoever sends endlessly many must not fill the memory.
MOST_KNOWN = 1000

_known_names: dict[bytes, tuple[str, ...]] = {}


def encode_headers(headers: Headers) -> bytes:
    if not headers:
        return b""
    names = [name.encode() for name, _ in headers]
    if any(b"\0" in value for _, value in headers) or any(b"\0" in name or b"\x01" in name for name in names):
        pairs = [[name, base64.b64encode(value).decode()] for name, value in headers]
        return OTHER_FORM + json.dumps(pairs).encode()
    return b"\0".join([b"\x01".join(names), *(value for _, value in headers)])


def decode_headers(blob: bytes) -> Headers:
    if not blob:
        return ()
    if blob.startswith(OTHER_FORM):
        return tuple((name, base64.b64decode(value)) for name, value in json.loads(blob[1:]))
    parts = blob.split(b"\0")
    names = _known_names.get(parts[0])
    if names is None:
        names = _learn_names(parts[0])
    return tuple(zip(names, parts[1:], strict=True))


def _learn_names(joined: bytes) -> tuple[str, ...]:
    if len(_known_names) >= MOST_KNOWN:
        _known_names.clear()
    names = tuple(joined.decode().split("\x01"))
    _known_names[joined] = names
    return names
