from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlearn.learner import Learner
from tests.http.client import Running, trained


@pytest.fixture(scope="session")
def learner() -> Learner:
    return trained()


@pytest.fixture
def running(tmp_path: Path, learner: Learner) -> Iterator[Running]:
    with Running(tmp_path / "state", learner) as server:
        yield server
