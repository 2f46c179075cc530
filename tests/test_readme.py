"""What the README tells people to type works, and is what the build runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from streamlearn.sample import NAMES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_python_example_runs(tmp_path):
    (example,) = (block for block in blocks("python") if "Learner(" in block)
    done = subprocess.run([sys.executable, "-W", "error", "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    *groups, last = done.stdout.splitlines()
    assert len(groups) == 5
    assert groups[0] == f"learned 600 examples of {NAMES[0]}, {NAMES[1]}"
    assert int(last.partition("%")[0]) > 50


def test_the_example_of_a_producer_runs(tmp_path):
    (example,) = (block for block in blocks("python") if "open_stream(" in block)
    subprocess.run([sys.executable, "-W", "error", "-c", example], cwd=tmp_path, check=True)
    assert (tmp_path / "examples.log").exists()


@pytest.mark.parametrize("does", ["serve --demo", "pytest"])
def test_the_build_finds_the_two_commands(does):
    """With the patterns of .ci/run itself: a command that it cannot find would fail only there."""
    patterns = re.findall(r"grep -m1 -x '(.*)' README\.md", (ROOT / ".ci" / "run").read_text())
    (pattern,) = (pattern for pattern in patterns if pattern.endswith(does))
    found = subprocess.run(["grep", "-x", pattern, "README.md"], cwd=ROOT, capture_output=True, text=True).stdout
    assert [f"{line}\n" for line in found.splitlines()] == [block for block in blocks("") if does in block]


def test_the_extras_it_names_exist():
    project = (ROOT / "pyproject.toml").read_text()
    for extra in set(re.findall(r"(?:streamlearn|\.)\[(\w+)\]", README)):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra
