from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from replay_producers import paper
from replay_producers.benchmarks import BENCHMARKS
from replay_producers.methods import increments, label, learner_values, methods_named
from replay_producers.reproduce import command
from replay_producers.runs import Run, forgetting, through_learner
from replay_producers.through_daemon import through_daemon
from replay_producers.times import BARE, measure
from replay_producers.toy import balance
from streamlearn.errors import SettingsError
from streamlearn.settings.learner import LearnerSettings
from tests.broker import Broker

PROMISED = {"dataset", "method", "buffer", "seed", "accuracy", "accuracy_by_group", "seconds", "examples", "through"}


def a_run(**other: Any) -> Run:
    usual: dict[str, Any] = {
        "benchmark": "split-fashion-mnist",
        "method": "er+t",
        "buffer": 50,
        "seed": 3,
        "epochs": 1,
        "limit": 305,  # the tasks do not end with a full batch
        "data_dir": None,
        "through": "learner",
    }
    return Run(**(usual | other))


def program(out: Path, *arguments: str) -> list[str]:
    few = ["--buffers", "50", "--limit", "300", "--no-times", "--out", str(out)]
    return [sys.executable, "-m", "replay_producers.reproduce", *few, *arguments]


def results(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "results.json").read_text())
    return found


# ---------------------------------------------------------------------- one run, in each way


def test_a_run_and_its_result() -> None:
    result = through_learner(a_run())
    assert result.keys() >= PROMISED
    assert (result["dataset"], result["method"], result["through"]) == ("split-fashion-mnist", "er+t", "learner")
    assert result["examples"] == 305
    assert len(result["accuracy_by_group"]) == 5
    assert result["accuracy"] == sum(result["accuracy_by_group"]) / 5
    assert result["accuracy_by_group"] == result["matrix"][-1]
    assert [len(row) for row in result["matrix"]] == [1, 2, 3, 4, 5]
    assert sum(result["task_probability"]) == pytest.approx(1)
    assert result["accuracy"] > 30
    again = through_learner(a_run())
    assert {k: v for k, v in again.items() if "seconds" not in k} == {
        k: v for k, v in result.items() if "seconds" not in k
    }


@pytest.mark.parametrize("method", ["er+t", "joint"])
def test_through_the_log_it_is_the_same_to_the_last_digit(method: str) -> None:
    alone = through_learner(a_run(method=method))
    result = through_daemon(a_run(method=method, through="log"))
    assert result["through"] == "log"
    assert result["accuracy_by_group"] == alone["accuracy_by_group"]
    assert (result["accuracy"], result["examples"]) == (alone["accuracy"], alone["examples"])
    assert result["seconds"] > 0


def test_through_a_real_kafka_it_is_the_same_to_the_last_digit(broker: Broker) -> None:
    run = a_run(epochs=2, through=f"{broker.url}/reproduced")
    result = through_daemon(run)
    assert result["through"] == "kafka"
    assert result["accuracy_by_group"] == through_learner(a_run(epochs=2))["accuracy_by_group"]


# ---------------------------------------------------------------------- methods and settings


def test_increments_add_one_trick_at_a_time() -> None:
    steps = increments(BENCHMARKS["split-fashion-mnist"])
    assert steps == ["er", "er+bic", "er+bic+elrd", "er+bic+elrd+brs", "er+t"]
    settings = [
        LearnerSettings(**learner_values(BENCHMARKS["split-fashion-mnist"], step, 200, 0, 60_000)) for step in steps
    ]
    assert [one.bias for one in settings] == ["none", "bic", "bic", "bic", "bic"]
    assert [one.decay is not None for one in settings] == [False, False, True, True, True]
    assert [one.eviction for one in settings] == ["reservoir", "reservoir", "reservoir", "brs", "lars+brs"]
    assert increments(BENCHMARKS["split-cifar10"])[1] == "er+iba"
    cifar = LearnerSettings(**learner_values(BENCHMARKS["split-cifar10"], "er+iba", 200, 0, 1))
    assert cifar.buffer_augment


def test_methods_from_the_command_line() -> None:
    benchmark = BENCHMARKS["split-fashion-mnist"]
    assert methods_named("sgd, ER+T,increments", benchmark)[:3] == ["sgd", "er+t", "er"]
    assert label("er+bic+elrd") == "ER + BiC + ELRD"
    with pytest.raises(SettingsError, match=r"'magic'.*'er\+wand'"):
        methods_named("magic,er+wand", benchmark)


def test_every_benchmark_has_settings_for_the_papers_methods() -> None:
    for benchmark in BENCHMARKS.values():
        for method in ["sgd", "joint", *increments(benchmark)]:
            learner_values(benchmark, method, 500, 0, 100)


def test_what_the_paper_says() -> None:
    assert paper.reported("split-fashion-mnist", "er+t", 200) == 76.07
    assert paper.reported("split-fashion-mnist", "sgd", 0) == 20.11
    assert paper.reported("split-fashion-mnist", "er+bic", 200) == 73.43
    assert paper.reported("split-fashion-mnist", "er+bic", 500) is None
    assert paper.reported("split-core50", "er", 1000) == 32.66
    assert paper.reported("split-cifar10", "er+t", 300) is None


def test_forgetting() -> None:
    assert forgetting([[90.0], [50.0, 80.0], [60.0, 70.0, 100.0]]) == 20.0
    assert forgetting([[90.0]]) is None


def test_the_balance_toy_agrees_with_the_paper() -> None:
    for eviction, error in paper.TOY_ERRORS.items():
        assert balance(eviction, 300).error == pytest.approx(error, abs=0.12)


def test_times_are_taken_in_turns() -> None:
    measured = measure(None, 100)
    assert measured["examples"] == 100
    assert all(len(tasks) == 5 for tasks in measured["seconds_by_task"].values())
    assert measured["seconds"][BARE] > 0


# ---------------------------------------------------------------------- the command


def test_results_and_report_of_a_small_reproduction(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = subprocess.run(
        program(out, "--methods", "sgd,joint,increments", "--seeds", "2", "--jobs", "2"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = results(out)
    assert len(found) == 14
    assert all(result.keys() >= PROMISED for result in found)
    assert {result["method"] for result in found} == {"sgd", "joint", *increments(BENCHMARKS["split-fashion-mnist"])}
    assert {result["buffer"] for result in found if result["method"] in ("sgd", "joint")} == {0}
    html = (out / "report.html").read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', html)  # nothing is fetched from anywhere
    assert "20.11" in html
    assert "ER+T" in html
    for name in ("accuracy", "increments", "matrix", "task_probability", "balance"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    (out / "report.html").unlink()
    command(methods="sgd,joint", seeds=2, limit=300, out=out, times=False)
    assert results(out) == found  # all were there already
    assert (out / "report.html").exists()
    with pytest.raises(SettingsError, match="other settings"):
        command(methods="sgd", limit=200, out=out)


def test_it_goes_on_after_an_interruption(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = program(out, "--methods", "er+t", "--seeds", "40", "--jobs", "1", "--limit", "1000")
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (out / "results.json").exists() or len(results(out)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "The same command goes on from there" in told
    first = results(out)
    assert 2 <= len(first) < 40
    few = program(out, "--methods", "er+t", "--seeds", str(len(first) + 2), "--jobs", "1", "--limit", "1000")
    done = subprocess.run(few, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(first)} of them done before" in done.stderr
    assert results(out)[: len(first)] == first
    assert [result["seed"] for result in results(out)] == list(range(len(first) + 2))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dataset", "mnist"], "there is no 'mnist'"),
        (["--methods", "magic"], "there is no 'magic'"),
        (["--buffers", "many"], "expected numbers"),
        (["--seeds", "0"], "--seeds"),
        (["--through", "smoke"], "expected learner, log or kafka"),
        (["--through", "kafka://host"], "names no topic"),
        (["--dataset", "split-cifar10"], "--data-dir is missing"),
        (["--data-dir", "/nowhere"], "/nowhere is not a directory"),
    ],
)
def test_bad_options_are_told_in_a_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = subprocess.run(program(tmp_path / "out", *arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
