"""What the paper reports (Buzzega et al., "Rethinking Experience Replay: a Bag of Tricks for Continual Learning").

Accuracy in percent, mean over the tasks at the end of training, mean of ten runs.
"""

from __future__ import annotations

from typing import Final

BUFFERS: Final = (200, 500, 1000)
TOY_ERRORS: Final = {"reservoir": 1.64, "brs": 0.28}  # squared error of the class counts, section IV-D
TITLE: Final = "Rethinking Experience Replay: a Bag of Tricks for Continual Learning"

# data set -> method -> accuracy at 200, 500, 1000; one number for a method without a buffer (table II)
_TABLE: Final[dict[str, dict[str, tuple[float, ...]]]] = {
    "split-fashion-mnist": {
        "sgd": (20.11,),
        "joint": (84.47,),
        "agem": (49.73, 49.47, 50.98),
        "gem": (69.46, 75.91, 79.62),
        "hal": (72.59, 77.59, 80.79),
        "icarl": (75.46, 77.54, 78.13),
        "er": (72.54, 79.02, 81.39),
        "er+t": (76.07, 80.11, 82.46),
    },
    "split-cifar10": {
        "sgd": (19.62,),
        "joint": (92.13,),
        "agem": (19.90, 20.35, 19.81),
        "gem": (28.14, 34.69, 36.68),
        "hal": (25.92, 27.99, 29.10),
        "icarl": (41.26, 41.34, 42.03),
        "er": (24.06, 27.06, 31.38),
        "er+t": (59.18, 62.60, 70.99),
    },
    "split-cifar100": {
        "sgd": (8.54,),
        "joint": (70.66,),
        "agem": (9.17, 9.23, 9.12),
        "gem": (9.18, 14.12, 17.88),
        "hal": (7.63, 9.66, 10.43),
        "icarl": (20.73, 24.74, 25.52),
        "er": (9.66, 11.50, 12.36),
        "er+t": (21.26, 24.90, 36.05),
    },
    "split-core50": {
        "sgd": (8.89,),
        "joint": (49.51,),
        "agem": (9.33, 9.42, 8.96),
        "hal": (11.53, 12.40, 8.53),
        "icarl": (8.01, 7.23, 8.05),
        "er": (19.48, 28.54, 32.66),
        "er+t": (25.63, 33.33, 37.44),
    },
}

# The same, one trick more each time, at 200 (table I). The first row and the last are those of the other table.
_INCREMENTS: Final[dict[str, dict[str, float]]] = {
    "split-fashion-mnist": {"er+bic": 73.43, "er+bic+elrd": 74.19, "er+bic+elrd+brs": 74.66},
    "split-cifar10": {
        "er+iba": 44.78,
        "er+iba+bic": 49.27,
        "er+iba+bic+elrd": 51.02,
        "er+iba+bic+elrd+brs": 52.75,
    },
    "split-cifar100": {
        "er+iba": 13.90,
        "er+iba+bic": 17.73,
        "er+iba+bic+elrd": 20.27,
        "er+iba+bic+elrd+brs": 20.64,
    },
}


def reported(dataset: str, method: str, buffer: int) -> float | None:
    """None where the paper has no number."""
    if buffer == BUFFERS[0] and method in _INCREMENTS.get(dataset, {}):
        return _INCREMENTS[dataset][method]
    numbers = _TABLE.get(dataset, {}).get(method, ())
    if len(numbers) == 1:
        return numbers[0]
    return numbers[BUFFERS.index(buffer)] if numbers and buffer in BUFFERS else None


# Seconds of training for the whole of Split Fashion-MNIST with buffer 200 and batches of 10 + 32, on two 2.8 GHz cores.
PEERS: Final = {
    "Mammoth, er_tricks": (26.0, 62.0),
    "Avalanche 0.6, replay": (43.0, 54.0),
    "the authors' code": (71.0, 91.0),
}
