"""Shared by all tests. A part that is missing skips its tests; with STREAMLEARN_REQUIRE_ALL=1 (CI) it fails them."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

pytest_plugins = ["tests.broker"]


def missing(reason: str) -> NoReturn:
    if os.environ.get("STREAMLEARN_REQUIRE_ALL") == "1":
        pytest.fail(f"required here, but missing: {reason}", pytrace=False)
    pytest.skip(reason)
