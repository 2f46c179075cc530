"""`streamlearn config`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from .command import streamlearn

PASSWORD = "STREAMLEARN_STREAM__KAFKA__PASSWORD"


def test_show_names_every_origin(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("[learner]\nbuffer_size = 500\n")
    environment = {"STREAMLEARN_THREADS": "1", PASSWORD: "hunter2"}
    done = streamlearn("config", "show", "--json", "-c", file, "--set", "learner.seed=7", environment=environment)
    shown = json.loads(done.stdout)
    assert shown["learner.buffer_size"] == {"value": 500, "from": f"file {file}"}
    assert shown["threads"] == {"value": 1, "from": "STREAMLEARN_THREADS"}
    assert shown["learner.seed"] == {"value": 7, "from": "--set"}
    assert shown["learner.bias"] == {"value": "bic", "from": "method er+t"}
    assert shown["log.level"] == {"value": "info", "from": "default"}
    assert shown["stream.kafka.password"] == {"value": "********", "from": PASSWORD}
    assert "hunter2" not in done.stdout + done.stderr


def test_what_show_prints_can_be_given_back(tmp_path: Path) -> None:
    environment = {PASSWORD: "hunter2", "STREAMLEARN_PRESET": "split-cifar10"}
    shown = streamlearn("config", "show", environment=environment)
    assert "hunter2" not in shown.stdout
    (tmp_path / "s.toml").write_text(shown.stdout)
    assert tomllib.loads(shown.stdout)["learner"]["normalise"]["mean"] == [0.4914, 0.4822, 0.4465]
    again = streamlearn("config", "show", "--json", environment={"STREAMLEARN_CONFIG": str(tmp_path / "s.toml")})
    values = {name: row["value"] for name, row in json.loads(again.stdout).items()}
    before = json.loads(streamlearn("config", "show", "--json", environment=environment).stdout)
    assert values | {"stream.kafka.password": "********"} == {name: row["value"] for name, row in before.items()}


def test_only_what_changed() -> None:
    done = streamlearn("config", "show", "--changed", "--json", "--preset", "split-fashion-mnist", "--state-dir", "x")
    shown = json.loads(done.stdout)
    assert shown["state_dir"] == {"value": "x", "from": "--state-dir"}
    assert shown["learner.decay"]["from"] == "preset split-fashion-mnist"
    assert "threads" not in shown


def test_all_faults_at_once() -> None:
    done = streamlearn("config", "show", "--set", "threads=0", "--set", "learner.bufer_size=1", "--set", "x")
    assert done.returncode == 2
    assert done.stderr == "error: --set 'x': expected NAME=VALUE\n"
    done = streamlearn("config", "show", "--set", "threads=0", "--set", "learner.bufer_size=1", "-c", "/nowhere")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: --config: /nowhere cannot be read: No such file or directory",
        "error: learner.bufer_size: there is no such setting; did you mean learner.buffer_size? (from --set)",
        "error: threads: input should be greater than or equal to 1 (from --set)",
        "hint: streamlearn config example shows every setting",
    ]


def test_a_stream_that_cannot_be() -> None:
    done = streamlearn("config", "show", "--stream", "http://x", "--set", "threads=0")
    assert (
        "error: stream: 'http://x' is of no kind known here (write kafka://host:9092/topic or log:PATH)" in done.stderr
    )
    assert "error: threads: " in done.stderr


def test_credentials_in_the_clear() -> None:
    environment = {PASSWORD: "hunter2", "STREAMLEARN_STREAM__KAFKA__SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
    done = streamlearn("config", "show", "--stream", "kafka://broker.example:9092/t", environment=environment)
    assert done.returncode == 2
    assert "error: stream.kafka: security_protocol SASL_PLAINTEXT needs username and password" in done.stderr
    assert "unencrypted to broker.example" in done.stderr
    assert "hunter2" not in done.stderr


def test_schema() -> None:
    schema = json.loads(streamlearn("config", "schema").stdout)
    assert schema["properties"]["threads"]["default"] == 1
    assert "LearnerSettings" in schema["$defs"]


def test_the_example_is_a_config(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(streamlearn("config", "example").stdout)
    assert streamlearn("config", "show", "--changed", "-c", file).returncode == 0
