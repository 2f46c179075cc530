"""Split CIFAR-10: ten classes of small photographs in five tasks of two."""

from replay_producers.command import command_for, run
from replay_producers.datasets.cifar import read_cifar10

command = command_for(
    read_cifar10,
    """Send Split CIFAR-10 to a stream: five tasks of two classes, one after the other.

    --data-dir holds torchvision's cifar-10-batches-py, or cifar-10-batches-bin, or cifar10.npz. The paper makes 50
    passes over each task (--epochs 50, which is 2.5 million records and 8 GB). Sending is idempotent: what the stream
    has already is not sent again, so the same command goes on after an interruption.
    """,
)

if __name__ == "__main__":
    run(command, "split_cifar10")
