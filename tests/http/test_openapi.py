"""The description says what the routes do."""

from __future__ import annotations

from pathlib import Path

from streamlearn.serving.access import Level
from tests.http.client import Running

WORDS = {"model": "streamlearn", "version": "1", "slot": "0", "order": "checkpoint", "digest": "0", "file": "app.js"}


def test_every_route_is_described_and_nothing_else(running: Running) -> None:
    described = running.ask("GET", "/openapi.json").json
    paths = {(path, method) for path, item in described["paths"].items() for method in item}
    assert paths == {(route.path, route.method.lower()) for route in running.app.routes}
    names = [operation["operationId"] for item in described["paths"].values() for operation in item.values()]
    assert len(names) == len(set(names))


def test_it_is_a_valid_description(running: Running) -> None:
    from openapi_spec_validator import validate

    validate(running.ask("GET", "/openapi.json").json)


def test_only_health_and_description_are_open_when_there_is_a_token(tmp_path: Path) -> None:
    with Running(tmp_path / "state", None, http={"token": "secret", "read_token": "look"}) as server:
        for route in server.app.routes:
            path = route.path.format_map(WORDS)
            answer = server.ask(route.method, path)
            if route.level is Level.OPEN:
                assert answer.status != 401
            else:
                assert answer.status == 401, path
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert server.ask(route.method, path, headers={"Authorization": "Bearer wrong"}).status == 401
                assert server.ask(route.method, path, headers={"Authorization": "Basic secret"}).status == 401
            if path == "/v1/events":
                continue
            reading = server.ask(route.method, path, headers={"Authorization": "Bearer look"}).status
            assert (reading == 403) == (route.level > Level.READ), path
            assert server.ask(route.method, path, headers={"Authorization": "Bearer secret"}).status not in (401, 403)


def test_without_tokens_only_administration_needs_the_one_in_the_state_directory(running: Running) -> None:
    for route in running.app.routes:
        if route.path == "/v1/events":
            continue
        path = route.path.format_map(WORDS)
        assert (running.ask(route.method, path).status == 401) == (route.level is Level.ADMIN), path
    assert running.ask("POST", "/v1/admin/pause", headers=running.token).status == 503  # no learner here
    assert (running.state_dir / "run" / "token").stat().st_mode & 0o777 == 0o600
