from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from streamlearn.learner import Learner
from tests.http.client import Running, trained


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the server, so that answers can be compared to the bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def learner() -> Learner:
    return trained()


@pytest.fixture
def running(tmp_path: Path, learner: Learner) -> Iterator[Running]:
    with Running(tmp_path / "state", learner) as server:
        yield server
