"""Split CORe-50: fifty household objects on video in nine tasks, ten objects first and then five at a time."""

from replay_producers.command import command_for, run
from replay_producers.datasets.core50 import read_core50

command = command_for(
    read_core50,
    """Send Split CORe-50 to a stream: ten objects, then eight times five.

    --data-dir holds core50_128x128 (the unpacked pictures), or core50_imgs.npz with paths.pkl. Sessions 3, 7 and 10 are
    for evaluation. The paper makes 15 passes over each task (--epochs 15, which is 1.8 million records and 90 GB).
    Sending is idempotent: what the stream has already is not sent again, so the same command goes on after an
    interruption.
    """,
)

if __name__ == "__main__":
    run(command, "split_core50")
