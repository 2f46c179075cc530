"""Split CIFAR-100: a hundred classes of small photographs in ten tasks of ten."""

from replay_producers.command import command_for, run
from replay_producers.datasets.cifar import read_cifar100

command = command_for(
    read_cifar100,
    """Send Split CIFAR-100 to a stream: ten tasks of ten classes, one after the other.

    --data-dir holds torchvision's cifar-100-python, or cifar-100-binary, or cifar100.npz. The paper makes 50 passes
    over each task (--epochs 50, which is 2.5 million records and 8 GB). Sending is idempotent: what the stream has
    already is not sent again, so the same command goes on after an interruption.
    """,
)

if __name__ == "__main__":
    run(command, "split_cifar100")
