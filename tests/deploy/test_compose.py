"""deploy/compose.yaml: against the published schema, and everything it points to is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamlearn.daemon.supervisor import STOP_SECONDS
from streamlearn.settings.http import is_loopback
from streamlearn.stream.url import KafkaAddress, parse_url
from tests.conftest import missing

from .commands import DEPLOY, check_environment, options_of, own

FILE = DEPLOY / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


def test_the_published_schema() -> None:
    check = Path(sys.executable).with_name("check-jsonschema")
    if not check.exists():
        missing("check-jsonschema")
    done = subprocess.run([check, "--builtin-schema", "vendor.compose-spec", FILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_everything_that_is_asked_for_is_there() -> None:
    assert set(SERVICES) == {"kafka", "streamlearn", "producer", "prometheus", "grafana"}


@pytest.mark.parametrize("name", SERVICES)
def test_its_references(name: str) -> None:
    service = SERVICES[name]
    assert set(service.get("depends_on", ())) <= set(SERVICES)
    for needed, condition in service["depends_on"].items() if isinstance(service.get("depends_on"), dict) else ():
        if condition["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[needed] or "build" in SERVICES[needed]  # the Dockerfile brings its own
    for volume in service.get("volumes", ()):
        source, _, _ = volume.partition(":")
        if source.startswith("."):
            assert (DEPLOY / source).exists(), source
        else:
            assert source in COMPOSE["volumes"], source
    for config in service.get("configs", ()):
        assert config["source"] in COMPOSE["configs"]
    if "build" in service:
        context = DEPLOY / service["build"]["context"]
        assert (context / service["build"]["dockerfile"]).is_file()
    else:
        assert ":" in service["image"]
        assert not service["image"].endswith(":latest")


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        host, _, _ = port.split(":")
        assert is_loopback(host)


def test_the_daemon_takes_its_command_and_environment() -> None:
    service = SERVICES["streamlearn"]
    options_of(service["command"])
    token = service["environment"]["STREAMLEARN_HTTP__TOKEN"]
    assert token.startswith("${STREAMLEARN_TOKEN:?"), "without a token it must not come up"
    settings = check_environment(own(service["environment"]) | {"STREAMLEARN_HTTP__TOKEN": "secret"})
    address = parse_url(settings.stream_url)
    assert isinstance(address, KafkaAddress)
    assert address.servers == (("kafka", 19092),)
    assert int(service["stop_grace_period"].removesuffix("s")) > STOP_SECONDS + 1


def test_the_producer_sends_where_the_daemon_listens(tmp_path: Path) -> None:
    service = SERVICES["producer"]
    python, *module = service["entrypoint"]
    assert python == "python"
    url = SERVICES["streamlearn"]["environment"]["STREAMLEARN_STREAM__URL"]
    assert url in service["command"]
    arguments = [f"log:{tmp_path / 'log'}" if argument == url else argument for argument in service["command"]]
    done = subprocess.run([sys.executable, *module, *arguments, "--limit", "10"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_kafka_listens_where_the_others_look() -> None:
    env = SERVICES["kafka"]["environment"]
    listeners = dict(one.split("://:") for one in env["KAFKA_LISTENERS"].split(","))
    advertised = dict(one.split("://") for one in env["KAFKA_ADVERTISED_LISTENERS"].split(","))
    protocols = dict(one.split(":") for one in env["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    assert set(listeners) == set(protocols) == set(advertised) | {env["KAFKA_CONTROLLER_LISTENER_NAMES"]}
    for name, address in advertised.items():
        assert address.rpartition(":")[2] == listeners[name]
    assert advertised[env["KAFKA_INTER_BROKER_LISTENER_NAME"]] == "kafka:19092"
    (port,) = SERVICES["kafka"]["ports"]
    assert f"localhost:{port.split(':')[1]}" in advertised.values()
    assert env["KAFKA_LOG_DIRS"] in [volume.partition(":")[2] for volume in SERVICES["kafka"]["volumes"]]
    assert f"localhost:{listeners['INSIDE']}" in SERVICES["kafka"]["healthcheck"]["test"][1]


def here(service: str, path: str) -> Path:
    """The file of ours that a container of the service sees under this path."""
    for volume in SERVICES[service]["volumes"]:
        source, target, *_ = volume.split(":")
        if source.startswith(".") and (path == target or path.startswith(f"{target}/")):
            return DEPLOY / source / path.removeprefix(target).lstrip("/")
    raise AssertionError(f"{path} of {service} is not ours")


def test_prometheus_finds_its_files_and_the_daemon() -> None:
    (option,) = (one for one in SERVICES["prometheus"]["command"] if one.startswith("--config.file="))
    path = option.partition("=")[2]
    config = yaml.safe_load(here("prometheus", path).read_text())
    for rules in config["rule_files"]:
        assert here("prometheus", f"{Path(path).parent}/{rules}").is_file()
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["streamlearn:8080"]}]
    (token,) = SERVICES["prometheus"]["configs"]
    assert job["authorization"] == {"credentials_file": token["target"]}
    assert COMPOSE["configs"][token["source"]]["content"].startswith("${STREAMLEARN_TOKEN")


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    folder = "/etc/grafana/provisioning"
    (source,) = yaml.safe_load(here("grafana", f"{folder}/datasources/streamlearn.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    provided = list(here("grafana", f"{folder}/dashboards").glob("*.yml"))
    (provider,) = (one for path in provided for one in yaml.safe_load(path.read_text())["providers"])
    dashboards = here("grafana", provider["options"]["path"])
    assert source["uid"] in (dashboards / "streamlearn.json").read_text()
