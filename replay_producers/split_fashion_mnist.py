"""Split Fashion-MNIST: ten classes of clothes in five tasks of two."""

from replay_producers.command import command_for, run
from replay_producers.datasets.fashion_mnist import read_fashion_mnist

command = command_for(
    read_fashion_mnist,
    """Send Split Fashion-MNIST to a stream: five tasks of two classes, one after the other.

    Without --data-dir the small sample that ships with streamlearn; with it the whole data set in torchvision's layout
    (DIR/FashionMNIST/raw). The paper makes one pass. Sending is idempotent: what the stream has already is not sent
    again, so the same command goes on after an interruption.
    """,
)

if __name__ == "__main__":
    run(command, "split_fashion_mnist")
