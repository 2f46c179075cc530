"""The files for Prometheus and Grafana, by themselves: valid, complete, and about metrics that exist."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import yaml

from streamlearn.metrics.catalogue import METRICS
from tests.metrics.prometheus import CONFIG, DEPLOY, RULES, dashboard, expressions, promtool, rules

README = (DEPLOY.parent / "README.md").read_text()
CORE_PANELS = {"stat", "timeseries", "table", "bargauge", "heatmap", "text"}
ROWS = ["Is it well?", "Stream", "Learning", "Accuracy by class group", "Serving", "Checkpoints", "Process"]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dashboard()["panels"]
    return found


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\bstreamlearn_\w+", expression))


KNOWN = set(METRICS) | {
    metric.name + suffix
    for metric in METRICS.values()
    if metric.kind == "histogram"
    for suffix in ("_bucket", "_sum", "_count")
}


# ---------------------------------------------------------------------- Prometheus


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", CONFIG),
        ("check", "config", "--syntax-only", CONFIG.with_name("prometheus.compose.yml")),
        ("check", "rules", RULES),
        ("test", "rules", RULES.with_name("streamlearn.rules.test.yml")),
    ],
    ids=lambda arguments: f"{arguments[0]} {arguments[-1].name}",
)
def test_promtool_has_nothing_to_say_against(arguments: tuple[Any, ...]) -> None:
    done = promtool(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_two_scrape_configurations_differ_in_target_and_token_only() -> None:
    here, composed = (yaml.safe_load(path.read_text()) for path in (CONFIG, CONFIG.with_name("prometheus.compose.yml")))
    del composed["scrape_configs"][0]["authorization"]
    for config in (here, composed):
        del config["scrape_configs"][0]["static_configs"]
    assert here == composed


def test_every_alert_is_tested_both_ways_and_has_a_place_in_the_readme() -> None:
    tested = yaml.safe_load(RULES.with_name("streamlearn.rules.test.yml").read_text())["tests"]
    cases = [case for test in tested for case in test["alert_rule_test"]]
    for rule in rules():
        name = rule["alert"]
        assert {bool(case["exp_alerts"]) for case in cases if case["alertname"] == name} == {True, False}, name
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description", "runbook_url"} == rule["annotations"].keys()
        file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert file == "README.md"
        assert README.count(f'<a id="{anchor}"></a>') == 1, f"the README says nothing about {name}"


def test_alerts_are_about_metrics_that_exist() -> None:
    for rule in rules():
        assert names_in(rule["expr"]) <= KNOWN
        assert names_in(rule["expr"]) or "up{" in rule["expr"]


# ---------------------------------------------------------------------- Grafana


def test_the_dashboard_is_one_that_grafana_11_knows_and_always_the_same() -> None:
    content = dashboard()
    assert (content["uid"], content["id"]) == ("streamlearn", None)
    assert content["schemaVersion"] in (39, 40)
    assert {panel["type"] for panel in panels()} <= CORE_PANELS | {"row"}
    assert [panel["title"] for panel in panels() if panel["type"] == "row"] == ROWS
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))


def test_every_panel_says_what_it_shows() -> None:
    for panel in panels():
        assert len(panel["description"]) > 15, panel["title"]
        assert panel["description"].endswith((".", "?")), panel["title"]
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["noValue"], panel["title"]
    for annotation in dashboard()["annotations"]["list"]:
        assert annotation["name"]


def test_everything_asks_the_one_data_source() -> None:
    source = yaml.safe_load((DEPLOY / "grafana" / "provisioning" / "datasources" / "streamlearn.yml").read_text())
    composed = yaml.safe_load((DEPLOY / "grafana" / "datasource.compose.yml").read_text())
    (given,), (other,) = source["datasources"], composed["datasources"]
    assert given | {"url": other["url"]} == other
    wanted = {"type": "prometheus", "uid": given["uid"]}
    content = dashboard()
    asking = [panel for panel in panels() if panel["type"] != "row"]
    asking += [target for panel in asking for target in panel["targets"]]
    asking += content["templating"]["list"]
    asking += [one for one in content["annotations"]["list"] if not one.get("builtIn")]
    assert all(one["datasource"] == wanted for one in asking)


def test_panels_lie_side_by_side_and_under_their_row() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        assert 0 <= at["x"] < at["x"] + at["w"] <= 24
        assert panel["type"] == "row" or at["h"] >= 4
        cells = set(itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])))
        assert not cells & taken, panel["title"]
        taken |= cells
    order = [(panel["gridPos"]["y"], panel["gridPos"]["x"]) for panel in panels()]
    assert order == sorted(order)
    assert {row for _, row in taken} == set(range(max(row for _, row in taken) + 1)), "a gap"


def test_the_dashboard_is_about_metrics_that_exist_and_leaves_hardly_any_out() -> None:
    used = {name for _, expression in expressions("x") for name in names_in(expression)}
    assert used <= KNOWN
    seen = used | {name.removesuffix("_bucket") for name in used}
    # These are for alerts and for people with questions of their own.
    assert set(METRICS) - seen == {
        "streamlearn_blocked",
        "streamlearn_examples_seen",
        "streamlearn_position_offset",
        "streamlearn_oldest_group_accuracy_ratio",
        "streamlearn_bias_refit_duration_seconds",
        "streamlearn_buffer_capacity",
        "streamlearn_checkpoint_interval_seconds",
    }


def test_variables_come_from_a_metric_that_is_always_there() -> None:
    for variable in dashboard()["templating"]["list"]:
        assert "label_values(streamlearn_build_info" in variable["query"]["query"]
        assert variable["description"]
