"""The methods that are compared: those the learner knows, and ER with any of the five tricks added to it.

`er+bic+elrd` is ER with bias control and the decaying learning rate. Where the rate decays, it starts from what the
preset has for er+t, which was chosen with the decay; otherwise from what it has for er.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, get_args

from replay_producers.benchmarks import Benchmark
from streamlearn.errors import SettingsError
from streamlearn.settings.learner import METHOD_DEFAULTS, LearnerSettings, Method
from streamlearn.settings.presets import preset_values

INCREMENTS: Final = "increments"  # stands for the whole row from er to er+t
# A buffer size means nothing to these.
WITHOUT_BUFFER: Final = frozenset(name for name, own in METHOD_DEFAULTS.items() if "buffer_size" in own)

_TRICKS: Final[dict[str, dict[str, Any]]] = {
    "iba": {"buffer_augment": True},
    "bic": {"bias": "bic"},
    "cbic": {"bias": "cbic"},
    "elrd": {},  # the preset's decay
    "brs": {"eviction": "brs"},
    "lars": {"eviction": "lars+brs"},
}
_LABELS: Final = {"sgd": "SGD", "joint": "Joint", "er": "ER", "er+t": "ER+T", "iba": "IBA", "bic": "BiC",
                  "cbic": "CBiC", "elrd": "ELRD", "brs": "BRS", "lars": "LARS", "agem": "A-GEM", "gem": "GEM",
                  "hal": "HAL", "icarl": "iCaRL", "si": "SI", "oewc": "oEWC"}  # fmt: skip


def increments(benchmark: Benchmark) -> list[str]:
    """One trick more each time, in the paper's order; without augmentation there is none to make independent."""
    tricks = (["iba"] if benchmark.augments else []) + ["bic", "elrd", "brs"]
    return ["er", *("+".join(["er", *tricks[:count]]) for count in range(1, len(tricks) + 1)), "er+t"]


def methods_named(text: str, benchmark: Benchmark) -> list[str]:
    """From the command line. Raises SettingsError with all that are not known."""
    found: list[str] = []
    faults = []
    for name in (part.strip().lower() for part in text.split(",")):
        if name == INCREMENTS:
            found += increments(benchmark)
        elif _is_known(name):
            found.append(name)
        else:
            faults.append(
                f"--methods: there is no {name!r}; there are {', '.join(get_args(Method))}, {INCREMENTS}, "
                f"and er with tricks ({', '.join(_TRICKS)}), such as er+bic+elrd"
            )
    if faults:
        raise SettingsError(faults)
    return list(dict.fromkeys(found))


def _is_known(name: str) -> bool:
    first, *tricks = name.split("+")
    return name in get_args(Method) or (first == "er" and bool(tricks) and all(trick in _TRICKS for trick in tricks))


def label(name: str) -> str:
    """As the paper writes it."""
    if name in _LABELS:
        return _LABELS[name]
    return " + ".join(_LABELS.get(part, part) for part in name.split("+"))


def learner_values(benchmark: Benchmark, method: str, buffer: int, seed: int, examples: int) -> dict[str, Any]:
    """The learner's settings for one run, all that are not defaults; `examples` is how many it will see."""
    if method in get_args(Method):
        values = preset_values(benchmark.name, method, buffer) | {"method": method}
        if method == "joint":
            values["buffer_size"] = examples  # it keeps everything
        elif method not in WITHOUT_BUFFER:
            values["buffer_size"] = buffer
    else:
        tricks = method.split("+")[1:]
        values = preset_values(benchmark.name, "er+t" if "elrd" in tricks else "er", buffer)
        values |= {"method": "er", "buffer_size": buffer}
        for trick in tricks:
            values |= _TRICKS[trick]
    values["seed"] = seed
    LearnerSettings.model_validate(values)  # a preset that does not fit a method is noticed before anything runs
    return values


def buffers_for(method: str, buffers: Iterable[int]) -> list[int]:
    return [0] if method in WITHOUT_BUFFER else list(buffers)
