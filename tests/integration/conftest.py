from __future__ import annotations

from pathlib import Path

import pytest

from tests.serving import stream_url


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return stream_url(request, tmp_path)
