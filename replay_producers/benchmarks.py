"""The comparisons that can be reproduced: a data set, its preset, and how much of the data is learned how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from replay_producers.datasets.cifar import read_cifar10, read_cifar100
from replay_producers.datasets.core50 import read_core50
from replay_producers.datasets.dataset import DataSet
from replay_producers.datasets.fashion_mnist import read_fashion_mnist
from streamlearn.errors import SettingsError
from streamlearn.settings.presets import PRESETS


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`name` is that of the preset, too."""

    name: str
    title: str
    read: Callable[[Path | None], DataSet]
    epochs: int
    limit: int | None = None
    reduced: str = ""  # how it differs from the paper's, if it does

    @property
    def augments(self) -> bool:
        return bool(PRESETS[self.name].common.get("augment", "none") != "none")


BENCHMARKS: Final[dict[str, Benchmark]] = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark("split-fashion-mnist", "Split Fashion-MNIST", read_fashion_mnist, 1),
        Benchmark("split-cifar10", "Split CIFAR-10", read_cifar10, 50),
        Benchmark(
            "split-cifar10-small",
            "Split CIFAR-10, reduced",
            read_cifar10,
            10,
            limit=5000,
            reduced="5,000 of the 50,000 pictures, 10 passes instead of 50, a ResNet18 with 16 filters instead of 64 "
            "(0.7 instead of 11 million parameters)",
        ),
        Benchmark("split-cifar100", "Split CIFAR-100", read_cifar100, 50),
        Benchmark("split-core50", "Split CORe-50", read_core50, 15),
    )
}


def benchmark_named(name: str) -> Benchmark:
    known = name.strip().replace("_", "-")
    if known not in BENCHMARKS:
        raise SettingsError([f"--dataset: there is no {name!r}; there are {', '.join(BENCHMARKS)}"])
    return BENCHMARKS[known]


@cache
def dataset_of(name: str, data_dir: Path | None) -> DataSet:
    """Read once in each process."""
    return BENCHMARKS[name].read(data_dir)
