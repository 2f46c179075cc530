from __future__ import annotations

from pathlib import Path

from streamlearn.daemon.child import Child
from streamlearn.settings.daemon import Settings


def test_a_signal_handler_can_end_a_child_that_is_being_looked_at(tmp_path: Path) -> None:
    """The interrupted code may hold subprocess' own lock, and a handler that waits for it would wait for ever."""
    child = Child("tests.daemon.sleeper", Settings(state_dir=tmp_path))
    with child._process._waitpid_lock:  # type: ignore[attr-defined]
        child.kill_at_once()
    child.kill()  # waits for the end
    assert child.code() == -9
    child.kill_at_once()  # nothing is left to end
