"""How large the things in one record may be. Plain values: the decoder, the settings and the HTTP edge share them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    record_bytes: int = 1024 * 1024  # the value of one record
    image_pixels: int = 4_000_000  # height x width of one picture
    label_bytes: int = 128  # the class name in UTF-8
    id_bytes: int = 256
    group_bytes: int = 128
