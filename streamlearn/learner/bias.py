"""Bias control: predictions corrected for the groups that the network favours. Training never sees it.

BiC corrects the last group, q_k = alpha * o_k + beta; CBiC adds one beta to each group. Both are fitted by
cross-entropy on the buffer. The network stands still meanwhile, so its outputs are computed once; what is left is a
small convex problem that Newton's method solves in a few iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.learner.classes import ClassGroup

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BiasCorrection:
    """q = scale * o + shift for each class. `version` counts the fits."""

    version: int = 0
    group: str | None = None  # the last group at the time of the fit
    alpha: float = 1.0  # of that group
    betas: Mapping[str, float] | None = None  # shift of each corrected group
    scale: NDArray[np.float32] | None = None
    shift: NDArray[np.float32] | None = None

    def correct(self, outputs: NDArray[np.float32]) -> Floats:
        """In double precision, which large outputs do not overflow. Classes newer than the fit stay as they are."""
        corrected = outputs.astype(np.float64)
        if self._in_double is not None:
            scale, shift = self._in_double
            fitted = corrected[:, : len(scale)]
            fitted *= scale
            fitted += shift
        return corrected

    @cached_property
    def _in_double(self) -> tuple[Floats, Floats] | None:
        """Asked for with every batch: numbers of one type are multiplied without a detour."""
        if self.scale is None or self.shift is None:
            return None
        return self.scale.astype(np.float64), self.shift.astype(np.float64)

    def state_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "group": self.group,
            "alpha": self.alpha,
            "betas": None if self.betas is None else dict(self.betas),
            "scale": None if self.scale is None else self.scale.copy(),
            "shift": None if self.shift is None else self.shift.copy(),
        }


def fit_bias(
    kind: str,
    outputs: Floats,
    targets: NDArray[np.int64],
    groups: Sequence[ClassGroup],
    last: int,
    version: int,
) -> BiasCorrection:
    """`outputs` of the network for buffer examples, one column per class; `last` is the place of the last group."""
    size = outputs.shape[1]
    name = groups[last].name
    if len(groups) == 1:  # nothing to be biased against
        return BiasCorrection(version, name)
    scale, shift = np.ones(size), np.zeros(size)
    if kind == "bic":
        members = groups[last].classes
        alpha, beta = _fit_last_group(outputs, targets, members)
        scale[members], shift[members] = alpha, beta
        betas = {name: beta}
    else:
        alpha = 1.0
        fitted = _fit_every_group(outputs, targets, [group.classes for group in groups])
        for group, beta in zip(groups, fitted, strict=True):
            shift[group.classes] = beta
        betas = {group.name: float(beta) for group, beta in zip(groups, fitted, strict=True)}
    return BiasCorrection(version, name, alpha, betas, scale.astype(np.float32), shift.astype(np.float32))


def _fit_last_group(outputs: Floats, targets: NDArray[np.int64], members: list[int]) -> tuple[float, float]:
    inside = np.zeros(outputs.shape[1], bool)
    inside[members] = True
    own = np.where(inside, outputs, 0.0)
    hit = inside[targets].astype(float)
    own_target = own[np.arange(len(targets)), targets]

    def look(theta: Floats) -> tuple[float, Floats, Floats]:
        corrected = np.where(inside, theta[0] * outputs + theta[1], outputs)
        loss, chance = _cross_entropy(corrected, targets)
        chance = np.where(inside, chance, 0.0)
        mass, first, second = chance.sum(1), (chance * own).sum(1), (chance * own**2).sum(1)
        slope = np.array([(first - own_target).mean(), (mass - hit).mean()])
        mixed = (first - first * mass).mean()
        return loss, slope, np.array([[(second - first**2).mean(), mixed], [mixed, (mass - mass**2).mean()]])

    alpha, beta = _newton(look, np.array([1.0, 0.0]))
    return float(alpha), float(beta)


def _fit_every_group(outputs: Floats, targets: NDArray[np.int64], groups: list[list[int]]) -> Floats:
    member = np.zeros((outputs.shape[1], len(groups)))
    for place, classes in enumerate(groups):
        member[classes, place] = 1.0
    share = member[targets].mean(0)

    def look(betas: Floats) -> tuple[float, Floats, Floats]:
        loss, chance = _cross_entropy(outputs + member @ betas, targets)
        mass = chance @ member
        return loss, mass.mean(0) - share, np.diag(mass.mean(0)) - mass.T @ mass / len(mass)

    betas = _newton(look, np.zeros(len(groups)))
    centred: Floats = betas - betas.mean()  # adding the same to all changes nothing: take the fit that sums to 0
    return centred


def _cross_entropy(scores: Floats, targets: NDArray[np.int64]) -> tuple[float, Floats]:
    scores = scores - scores.max(1, keepdims=True)
    exponents = np.exp(scores)
    totals = exponents.sum(1, keepdims=True)
    loss = float((np.log(totals[:, 0]) - scores[np.arange(len(targets)), targets]).mean())
    return loss, exponents / totals


def _newton(
    look: Callable[[Floats], tuple[float, Floats, Floats]], start: Floats, ridge: float = 1e-4, iterations: int = 30
) -> Floats:
    """Minimise a convex function given (value, slope, curvature) at a point.

    A weak pull towards the start keeps the fit finite where the buffer is told apart without an error, and where a
    direction has no effect at all.
    """
    theta = start

    def pulled(point: Floats) -> tuple[float, Floats, Floats]:
        value, slope, curve = look(point)
        away = point - start
        return value + ridge / 2 * float(away @ away), slope + ridge * away, curve + ridge * np.eye(len(away))

    value, slope, curve = pulled(theta)
    for _ in range(iterations):
        step = np.linalg.solve(curve, slope)
        if float(slope @ step) < 1e-12:
            break
        size = 1.0
        while size > 1e-6:
            there = pulled(theta - size * step)
            if there[0] <= value - 1e-4 * size * float(slope @ step):
                break
            size /= 2
        else:
            break
        theta = theta - size * step
        value, slope, curve = there
    return theta
