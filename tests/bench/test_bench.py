"""`streamlearn bench`: the figures it promises, in the form it promises. How fast is not for a test to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from streamlearn.bench.benches import benches
from streamlearn.bench.names import ALL

COMMAND = [sys.executable, "-c", "from streamlearn.cli import main; main()", "bench"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300)


def test_a_figure_as_json_and_as_a_table(tmp_path: Path) -> None:
    done = run("--only", "bias_refit", "--json", str(tmp_path / "figures.json"))
    assert done.returncode == 0, done.stderr
    (figure,) = json.loads((tmp_path / "figures.json").read_text())
    assert figure.keys() == {"name", "value", "unit", "yardstick", "yardstick_value", "ratio"}
    assert figure["name"] == "bias_refit"
    assert figure["ratio"] == figure["value"] / figure["yardstick_value"]
    assert "bias_refit" in done.stdout


def test_the_command_knows_every_figure_there_is() -> None:
    assert sorted(name for names in benches("kafka://localhost/x") for name in names) == sorted(ALL)


def test_what_cannot_be_measured_is_said_at_once() -> None:
    unknown = run("--only", "speed")
    assert unknown.returncode == 2
    assert "no figure 'speed'" in unknown.stderr
    brokerless = run("--only", "kafka_vs_learner")
    assert brokerless.returncode == 2
    assert "--kafka kafka://host:9092/topic" in brokerless.stderr
