"""The bias correction: the fit is the optimum, predictions use it, training does not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from streamlearn import Learner, LearnerSettings
from streamlearn.learner.bias import fit_bias
from streamlearn.learner.classes import ClassGroup
from tests.learner.states import digest
from tests.learner.streams import blobs

GROUPS = [ClassGroup("old", 0, [0, 1]), ClassGroup("middle", 0, [2]), ClassGroup("new", 0, [3, 4])]


def biased_outputs(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of a network that favours the last group, and not clearly enough to be told apart without an error."""
    rng = np.random.default_rng(4)
    targets = rng.integers(0, 5, count)
    outputs = rng.normal(0, 1.5, (count, 5))
    outputs[np.arange(count), targets] += 2
    outputs[:, 3:] = 1.7 * outputs[:, 3:] + 3
    outputs[:, 2] -= 1
    return outputs, targets


def loss(outputs: np.ndarray, targets: np.ndarray) -> float:
    return float((np.log(np.exp(outputs).sum(1)) - outputs[np.arange(len(targets)), targets]).mean())


def test_bic_finds_the_optimum_and_touches_the_last_group_only() -> None:
    outputs, targets = biased_outputs()
    fit = fit_bias("bic", outputs, targets, GROUPS, 2, 7)
    assert (fit.version, fit.group) == (7, "new")
    assert fit.scale is not None
    assert fit.shift is not None
    np.testing.assert_array_equal(fit.scale[:3], 1)
    np.testing.assert_array_equal(fit.shift[:3], 0)

    def objective(theta: np.ndarray) -> float:
        corrected = outputs.copy()
        corrected[:, 3:] = theta[0] * outputs[:, 3:] + theta[1]
        return loss(corrected, targets)

    best = minimize(objective, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    assert [fit.alpha, (fit.betas or {})["new"]] == pytest.approx(best.x, abs=0.01)
    corrected = fit.correct(outputs.astype(np.float32))
    assert (corrected.argmax(1) == targets).mean() > (outputs.argmax(1) == targets).mean() + 0.1


def test_cbic_gives_each_group_its_own_offset() -> None:
    outputs, targets = biased_outputs()
    fit = fit_bias("cbic", outputs, targets, GROUPS, 2, 1)
    assert fit.scale is not None
    np.testing.assert_array_equal(fit.scale, 1)
    betas = fit.betas or {}
    assert betas["middle"] > betas["old"] > betas["new"]
    assert sum(betas.values()) == pytest.approx(0, abs=1e-9)

    def objective(theta: np.ndarray) -> float:
        return loss(outputs + np.repeat(theta, [2, 1, 2]), targets)

    best = minimize(objective, np.zeros(3), method="BFGS")
    assert [betas[name] for name in ("old", "middle", "new")] == pytest.approx(best.x - best.x.mean(), abs=0.01)


def test_a_buffer_told_apart_without_an_error_gives_a_finite_fit() -> None:
    targets = np.arange(50) % 5
    outputs = np.eye(5)[targets] * 40
    for kind in ("bic", "cbic"):
        fit = fit_bias(kind, outputs, targets, GROUPS, 2, 1)
        assert np.isfinite(fit.correct(outputs.astype(np.float32))).all()
        assert (fit.correct(outputs.astype(np.float32)).argmax(1) == targets).all()


def test_one_group_is_not_corrected() -> None:
    outputs, targets = biased_outputs()
    assert fit_bias("bic", outputs[:, :2], targets % 2, GROUPS[:1], 0, 1).scale is None


def test_training_never_sees_it() -> None:
    parts = [blobs(["a", "b"], 60), blobs(["c", "d"], 60)]
    networks = []
    for bias in ("none", "bic", "cbic"):
        learner = Learner(LearnerSettings(buffer_size=50, bias=bias, group_span=40, bias_refit_every=30))
        for part in parts:
            learner.learn(part.inputs, part.labels)
            learner.end_group()
        state = learner.state_dict()
        networks.append(digest({name: state[name] for name in ("network", "buffer", "chance")}))
    assert len(set(networks)) == 1


def test_the_newest_fit_is_in_force_and_versions_count_up() -> None:
    learner = Learner(LearnerSettings(buffer_size=50, group_span=40, bias_refit_every=0))
    first, second, third = blobs(["a", "b"], 60), blobs(["c"], 60), blobs(["d"], 60)
    learner.learn(first.inputs, first.labels)
    assert learner.bias.version == 0
    report = learner.learn(second.inputs, second.labels)  # a new class: the first group has ended
    assert [(refit.cause, refit.group) for refit in report.refits] == [("new-class", "group-1")]
    assert (learner.bias.version, learner.bias.group) == (1, "group-1")
    report = learner.end_group()
    assert [(refit.cause, refit.group) for refit in report.refits] == [("end-of-group", "group-2")]
    assert learner.bias.group == "group-2"
    assert learner.bias.alpha != 1.0
    report = learner.learn(third.inputs, third.labels)  # the group had ended already: no second refit
    assert report.refits == []
    assert learner.bias.version == 2


def test_refit_on_request_changes_no_later_learning() -> None:
    settings = LearnerSettings(buffer_size=50, bias_examples=20, group_span=40, bias_refit_every=0)
    asked, plain = Learner(settings), Learner(settings)
    for part in (blobs(["a", "b"], 60), blobs(["c"], 60)):
        for learner in (asked, plain):
            learner.learn(part.inputs, part.labels)
        asked.refit_bias()
    asked_state, plain_state = asked.state_dict(), plain.state_dict()
    for name in ("network", "buffer", "chance", "classes"):
        assert digest(asked_state[name]) == digest(plain_state[name])


def test_refit_every_so_many_examples() -> None:
    learner = Learner(LearnerSettings(buffer_size=50, bias_refit_every=50, group_span=1000))
    part = blobs(["a", "b"], 60)
    report = learner.learn(part.inputs, part.labels)
    assert [refit.cause for refit in report.refits] == ["interval", "interval"]
