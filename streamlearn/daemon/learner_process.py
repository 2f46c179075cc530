"""`python -m streamlearn.daemon.learner_process`: the learner as a child of the supervisor."""

from __future__ import annotations

import signal
from types import FrameType
from typing import TYPE_CHECKING

from streamlearn.daemon.child import Parent, leave
from streamlearn.errors import StreamlearnError
from streamlearn.lock import DirectoryLock
from streamlearn.logs import event_logger

if TYPE_CHECKING:
    from streamlearn.daemon.learning import Learning

log = event_logger("learner")


def main() -> int:
    stopping = following = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = Parent()
    more = parent.more
    parent.listen(lambda word: None)

    def tick(learning: Learning) -> None:
        nonlocal following
        if learning.following and not following:
            following = True
            parent.tell(following=True)

    from streamlearn.daemon.running import run_learning  # imports torch: seconds

    try:
        run_learning(
            parent.settings,
            lambda: stopping,
            DirectoryLock.shared(parent.settings.state_dir, more["lock"]),
            until_idle=more["until_idle"],
            demo=more["demo"],
            controlled=True,
            tick=tick,
        )
    except StreamlearnError as error:
        log.error("learning has stopped", reason=error.message)
        parent.tell(reason=error.message, hint=error.hint)
        return error.exit_code
    return 0


if __name__ == "__main__":
    leave(main())
