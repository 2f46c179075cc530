"""Every command of the README is run, or read by the program it is for, or stands below with the reason why not."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from streamlearn.records.decode import Decoder
from streamlearn.records.encode import encode_example
from streamlearn.records.record import Example
from streamlearn.run_folder import RunFolder
from streamlearn.stream.url import open_stream
from tests.broker import Broker
from tests.conftest import missing
from tests.deploy.commands import options_of
from tests.integration.daemon import SAMPLE, Daemon, feed

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PROGRAMS = (
    "streamlearn",
    "python",
    "python3",
    "curl",
    "kcat",
    "docker",
    "kubectl",
    "pip",
    "deploy/kafka/start",
    "echo",
)
ELSEWHERE = {
    "python3 -m venv": "run by .ci/run, as it stands there",
    "docker": "there is none where the tests run; tests/deploy reads the files with hadolint and the published schema",
    "kubectl": "there is no cluster where the tests run; tests/deploy reads the files with the published schemas",
    "pip install": "an extra, which test_readme.py looks up in pyproject.toml",
    "deploy/kafka/start": "tests/broker.py starts every test's Kafka with it",
}


def blocks_and_text() -> tuple[list[str], str]:
    """The lines of the blocks without a language, continued lines as one; and everything outside of blocks."""
    lines, text, language = [], [], None
    for line in README.replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            language = line[3:] if language is None else None
        elif language is None:
            text.append(line)
        elif language == "":
            lines.append(line)
    return lines, "\n".join(text)


def commands() -> list[str]:
    """In their order: whole lines of the blocks, and what stands `so` in the text and is more than a name."""
    lines, text = blocks_and_text()
    found = [re.sub(r"\s+", " ", one).strip() for one in [*lines, *re.findall(r"`([^`]+)`", text)]]
    return list(dict.fromkeys(one for one in found if one.startswith(tuple(f"{program} " for program in PROGRAMS))))


def of(program: str) -> list[str]:
    return [command for command in commands() if command.startswith(f"{program} ")]


def test_each_command_is_somebodys() -> None:
    ours = {*of("streamlearn"), *of("python -m"), *of("curl"), *piped("kcat")}
    for command in set(commands()) - ours:
        assert command.startswith(tuple(ELSEWHERE)), f"nothing runs or reads: {command}"
    for start in ELSEWHERE:
        assert any(command.startswith(start) for command in commands()) or start in README, (
            f"not there any more: {start}"
        )


# ------------------------------------------------------------------ ours


@pytest.mark.parametrize("command", of("streamlearn"))
def test_our_command_takes_its_options(command: str) -> None:
    options_of([word for word in shlex.split(command.partition(" > ")[0])[1:] if word != "..."])


@pytest.mark.parametrize("command", of("python -m"))
def test_a_producer_takes_its_options(command: str) -> None:
    _, _, module, *rest = shlex.split(command)
    told = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True).stdout
    for option in (word for word in rest if word.startswith("--")):
        assert re.search(rf"{option}\b", told), option


# ------------------------------------------------------------------ curl, and a real daemon


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the pictures that the README speaks of."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("shoe.png", "boot.png"):
        Image.fromarray(SAMPLE.test[0]).save(folder / name)
    return folder


@pytest.fixture(scope="module")
def of_pictures(folder: Path) -> Iterator[Daemon]:
    (folder / "pictures").mkdir()
    feed(f"log:{folder / 'pictures' / 'stream.log'}", 0, 200)
    with Daemon(folder / "pictures" / "state") as daemon:
        daemon.ready()
        yield daemon


@pytest.fixture(scope="module")
def of_numbers(folder: Path) -> Iterator[Daemon]:
    """Of vectors such as those in the README."""
    (folder / "numbers").mkdir()
    stream = open_stream(f"log:{folder / 'numbers' / 'stream.log'}")
    inputs = SAMPLE.train[:200, 0, :3].astype("float32")
    stream.append([encode_example(one, "spam" if k % 2 else "ham", id=str(k)) for k, one in enumerate(inputs)])
    stream.close()
    with Daemon(folder / "numbers" / "state") as daemon:
        daemon.ready()
        yield daemon


def test_curl(folder: Path, of_pictures: Daemon, of_numbers: Daemon) -> None:
    """In one go and in their order: a label comes for what was asked before. 4xx and 5xx are failures."""
    if shutil.which("curl") is None:
        missing("curl")
    for command in of("curl"):
        daemon = of_pictures if "png" in command else of_numbers
        token = RunFolder(daemon.state_dir).own_token()
        command = command.replace("localhost:8080", daemon.http_url).replace("TOKEN", token)
        script = f'curl() {{ command curl -sS --fail-with-body "$@"; }}\n{command}'
        done = subprocess.run(["bash", "-euc", script], cwd=folder, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert done.stdout.startswith("{")


# ------------------------------------------------------------------ kcat, and a real Kafka


def piped(program: str) -> list[str]:
    return [command for command in commands() if re.search(rf"(^|\| ){program} ", command)]


def test_kcat(folder: Path, broker: Broker) -> None:
    if shutil.which("kcat") is None:
        missing("kcat")
    topic, sent = broker.new_topic(), piped("kcat")
    assert sent
    for command in sent:
        command = command.replace("localhost:9092", broker.url.removeprefix("kafka://"))
        command = command.replace("-t examples", f"-t {topic}")
        subprocess.run(["bash", "-euc", command], cwd=folder, check=True, timeout=60)
    stream = open_stream(f"{broker.url}/{topic}")
    stream.open(None)
    decoded = [Decoder().decode(record) for record in stream.poll(10, 10)]
    stream.close()
    assert {example.label for example in decoded if isinstance(example, Example)} == {"boot", "spam"}
