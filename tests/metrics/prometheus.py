"""A real Prometheus that scrapes fast, and what the files in deploy/ ask of one."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import missing
from tests.serving import wait_until

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
CONFIG, RULES = DEPLOY / "prometheus" / "prometheus.yml", DEPLOY / "prometheus" / "streamlearn.rules.yml"
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "streamlearn.json"
SCRAPE_SECONDS = 0.5
FASTER = 90  # how much, in a test, than the alerts' own windows: an hour is 40 seconds


def promtool(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    if shutil.which("promtool") is None:
        missing("promtool (Debian package prometheus)")
    return subprocess.run(["promtool", *map(str, arguments)], input=stdin, capture_output=True, text=True)


def check_metrics(text: str) -> None:
    """As promtool sees them: every metric has a help text, a fitting name and a type."""
    checked = promtool("check", "metrics", stdin=text)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def families(text: str) -> dict[str, Metric]:
    """By the name that queries use; the parser takes _total off a counter's."""
    found = text_string_to_metric_families(text)
    return {family.name + ("_total" if family.type == "counter" else ""): family for family in found}


def series(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families(text).values()
        for sample in family.samples
    }


def value(text: str, name: str, **labels: str) -> float:
    return series(text)[name, frozenset(labels.items())]


class Prometheus:
    def __init__(
        self, folder: Path, targets: Mapping[str, str], rules: Sequence[dict[str, Any]] = (), token: str | None = None
    ) -> None:
        """`targets`: what the label `instance` shall be, and the URL."""
        if shutil.which("prometheus") is None:
            missing("prometheus (Debian package prometheus)")
        folder.mkdir()
        config = yaml.safe_load(CONFIG.read_text())
        config["global"] = {"scrape_interval": f"{int(SCRAPE_SECONDS * 1000)}ms", "evaluation_interval": "500ms"}
        config["rule_files"] = [str(folder / "rules.yml")]
        (job,) = config["scrape_configs"]
        if token is not None:
            (folder / "token").write_text(f"{token}\n")
            job["authorization"] = {"credentials_file": str(folder / "token")}
        job["scrape_timeout"] = f"{int(SCRAPE_SECONDS * 1000)}ms"
        job["static_configs"] = [
            {"targets": [url.removeprefix("http://")], "labels": {"instance": name}} for name, url in targets.items()
        ]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "test", "rules": list(rules)}]}))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        self._output = (folder / "out").open("wb")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self._address}",
                "--log.level=warn",
            ],
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Prometheus:
        try:
            wait_until(self._is_ready, "Prometheus")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, Path(self._output.name).read_text()
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=20):
                return True
        except urllib.error.HTTPError as error:  # 503: not yet
            error.close()
            return False
        except OSError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self._ask("query", query=expression)

    def query_range(self, expression: str, seconds: float) -> list[dict[str, Any]]:
        """Over the last `seconds`, as a panel would."""
        end = float(self.query("time()")[1])
        return self._ask("query_range", query=expression, start=end - seconds, end=end, step=SCRAPE_SECONDS)

    def _ask(self, what: str, **arguments: Any) -> Any:
        url = f"http://{self._address}/api/v1/{what}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{arguments['query']}: {error.read().decode()}") from None

    def increase(self, selector: str) -> float:
        """Of the sum of all series, from every sample there is: with resets understood as Prometheus does, but without
        its guesses about what came before the first sample and after the last.
        """
        total = 0.0
        for found in self.query(f"{selector}[1h]"):
            values = [float(number) for _, number in found["values"]]
            total += sum(after - before if after >= before else after for before, after in itertools.pairwise(values))
        return total

    def firing(self) -> set[tuple[str, str]]:
        """Alerts and the instances they fire for."""
        return {
            (found["metric"]["alertname"], found["metric"]["instance"])
            for found in self.query('ALERTS{alertstate="firing"}')
        }


def rules(faster: float = 1.0) -> list[dict[str, Any]]:
    """The alerts, with every duration in them divided."""

    def shorter(found: re.Match[str]) -> str:
        seconds = int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
        return f"{int(seconds * 1000 / faster)}ms"

    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    if faster != 1:
        for rule in group["rules"]:
            for part in {"expr", "for"} & rule.keys():
                rule[part] = re.sub(r"\b(\d+)([smh])\b", shorter, rule[part])
    return list(group["rules"])


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return content


def expressions(instance: str) -> Iterator[tuple[str, str]]:
    """Of every panel and every annotation of the dashboard: what it is for, and the query with its variables set."""
    content = dashboard()
    for panel in content["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], _set(target["expr"], instance)
    for annotation in content["annotations"]["list"]:
        if "expr" in annotation:
            yield annotation["name"], _set(annotation["expr"], instance)


def _set(expression: str, instance: str) -> str:
    variables = {"job": "streamlearn", "instance": instance, "__rate_interval": "5s", "__range": "5m"}
    for name, setting in variables.items():
        expression = expression.replace(f"${name}", setting)
    assert "$" not in expression, expression
    return expression.replace("offset 15s", "offset 1s")  # a scrape or two ago, as there
