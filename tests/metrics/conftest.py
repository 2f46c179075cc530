from __future__ import annotations

from tests.http.conftest import learner, running

__all__ = ["learner", "running"]
