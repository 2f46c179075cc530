"""deploy/kubernetes: against the schemas of Kubernetes, and every name that is used is defined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamlearn.daemon.supervisor import STOP_SECONDS
from streamlearn.serving.openapi import description
from tests.conftest import missing

from .commands import DEPLOY, check_environment, options_of, settings_of_serve

FOLDER = DEPLOY / "kubernetes"
VERSIONS = ("1.25", "1.29", "1.33")  # the oldest we speak of, and later ones
SECRET = "streamlearn-tokens"  # made by hand, as learner/kustomization.yaml tells


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def files() -> list[Path]:
    return sorted(path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml")


def named(kind: str) -> dict[str, dict[str, Any]]:
    found = [document for path in files() for document in documents(path) if document["kind"] == kind]
    return {document["metadata"]["name"]: document for document in found if "selector" in document["spec"]}


def workloads() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each with its pod and its only container."""
    found = []
    for kind in ("StatefulSet", "Deployment"):
        for name, document in named(kind).items():
            pod = document["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            found.append((name, pod, container))
    return found


def kustomizations() -> list[Path]:
    return sorted(FOLDER.rglob("kustomization.yaml"))


# ------------------------------------------------------------------ the schemas


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_published_schema(path: Path, version: str) -> None:
    try:
        import kubernetes_validate
    except ImportError:
        missing("kubernetes-validate")
    for document in documents(path):
        if document["kind"] == "ServiceMonitor":
            continue  # not Kubernetes' own
        if path.name == "learner-snapshots.yaml":
            continue  # a patch; what it makes of the StatefulSet is checked below
        kubernetes_validate.validate(document, version, strict=True)


def test_the_learner_with_shared_snapshots() -> None:
    """The patch adds a mount to a container that is there, and a volume; the whole is a StatefulSet still."""
    (patch,) = documents(FOLDER / "followers" / "learner-snapshots.yaml")
    whole = named("StatefulSet")[patch["metadata"]["name"]]
    pod, added = whole["spec"]["template"]["spec"], patch["spec"]["template"]["spec"]
    (container,), (more,) = pod["containers"], added["containers"]
    assert more["name"] == container["name"]
    assert not {volume["name"] for volume in added["volumes"]} & {volume["name"] for volume in pod["volumes"]}
    state = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "state")
    assert more["volumeMounts"][0]["mountPath"] == f"{state}/snapshots"  # where the learner leaves them
    claims = {claim["metadata"]["name"]: claim for claim in documents(FOLDER / "followers" / "snapshots.yaml")}
    assert claims[added["volumes"][0]["persistentVolumeClaim"]["claimName"]]["spec"]["accessModes"] == ["ReadWriteMany"]


def test_the_service_monitor() -> None:
    monitor = named("ServiceMonitor")["streamlearn"]
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    wanted = monitor["spec"]["selector"]["matchLabels"]
    found = [
        service for service in named("Service").values() if wanted.items() <= service["metadata"]["labels"].items()
    ]
    assert len(found) == 1, "one target for the whole daemon"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in found[0]["spec"]["ports"]]
    assert endpoint["authorization"]["credentials"] == {"name": SECRET, "key": "read-token"}


# ------------------------------------------------------------------ names


@pytest.mark.parametrize("path", kustomizations(), ids=lambda path: path.parent.name)
def test_a_kustomization_names_what_is_there_and_all_of_it(path: Path) -> None:
    (content,) = documents(path)
    named_here = {*content["resources"], *(patch["path"] for patch in content.get("patches", ()))}
    for generator in content.get("configMapGenerator", ()):
        named_here |= set(generator["files"])
    for name in named_here:
        assert (path.parent / name).exists(), name
    there = {file.name for file in path.parent.iterdir()} - {path.name}
    assert there == {name for name in named_here if "/" not in name}


@pytest.mark.parametrize(
    ("name", "pod", "container"), workloads(), ids=lambda value: value if type(value) is str else ""
)
def test_volumes_ports_and_secrets_are_defined(name: str, pod: dict[str, Any], container: dict[str, Any]) -> None:
    claims = [
        claim["metadata"]["name"]
        for document in named("StatefulSet").values()
        if document["metadata"]["name"] == name
        for claim in document["spec"]["volumeClaimTemplates"]
    ]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    } | set(claims)
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
        assert container[probe]["httpGet"]["path"] in description()["paths"]
    assert [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume] == [SECRET]
    (generator,) = (documents(FOLDER / "learner" / "kustomization.yaml")[0])["configMapGenerator"]
    assert {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume} <= {generator["name"]}


def test_services_select_the_pods() -> None:
    templates = [
        document["spec"]["template"]["metadata"]["labels"]
        for kind in ("StatefulSet", "Deployment")
        for document in named(kind).values()
    ]

    def selected(selector: dict[str, str]) -> int:
        return sum(selector.items() <= labels.items() for labels in templates)

    services = {name: service["spec"] for name, service in named("Service").items()}
    assert selected(services["streamlearn"]["selector"]) == 2
    assert selected(services["streamlearn-learner"]["selector"]) == 1
    assert services["streamlearn-learner"]["clusterIP"] == "None"
    assert named("StatefulSet")["streamlearn"]["spec"]["serviceName"] in services
    assert selected(named("PodDisruptionBudget")["streamlearn-followers"]["spec"]["selector"]["matchLabels"]) == 1
    for kind in ("StatefulSet", "Deployment"):
        for document in named(kind).values():
            assert selected(document["spec"]["selector"]["matchLabels"]) == 1


# ------------------------------------------------------------------ what runs


@pytest.mark.parametrize(
    ("name", "pod", "container"), workloads(), ids=lambda value: value if type(value) is str else ""
)
def test_it_runs_with_as_little_as_can_be(name: str, pod: dict[str, Any], container: dict[str, Any]) -> None:
    """What the restricted Pod Security Standard asks for, and a root file system that cannot be written to."""
    user = (DEPLOY / "Dockerfile").read_text().partition("\nUSER ")[2].partition(":")[0]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == int(user)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert pod["terminationGracePeriodSeconds"] > STOP_SECONDS + 1
    assert pod["automountServiceAccountToken"] is False


def secrets_of(container: dict[str, Any], folder: Path) -> dict[str, str]:
    """The pod's environment, with the files of its secret where they can be read here."""
    place = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "tokens")
    for key in ("token", "read-token"):
        (folder / key).write_text(key)
    return {one["name"]: one["value"].replace(place, str(folder)) for one in container["env"]}


def test_the_learner_takes_its_command_and_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, _, container = next(one for one in workloads() if one[0] == "streamlearn")
    arguments = [argument.replace("/etc/streamlearn", str(FOLDER / "learner")) for argument in container["args"]]
    settings = settings_of_serve(monkeypatch, arguments, secrets_of(container, tmp_path))
    assert str(settings.state_dir) in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert settings.http.port == container["ports"][0]["containerPort"]
    assert settings.http.token is not None
    assert settings.http.read_token is not None


def test_a_follower_takes_its_command_and_settings(tmp_path: Path) -> None:
    _, _, container = next(one for one in workloads() if one[0] == "streamlearn-followers")
    options = options_of(container["args"])
    assert str(options["snapshots"]) in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert options["http"] == f"0.0.0.0:{container['ports'][0]['containerPort']}"
    check_environment(secrets_of(container, tmp_path) | {"STREAMLEARN_HTTP__HOST": "0.0.0.0"})
