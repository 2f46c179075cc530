"""Where settings come from, who wins, and what a person is told about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlearn.errors import SettingsError
from streamlearn.settings.given import Given, from_text
from streamlearn.settings.sources import Loaded, load_settings
from streamlearn.settings.tree import secret_values

PASSWORD = "STREAMLEARN_STREAM__KAFKA__PASSWORD"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def load(file: Path | None = None, environment: dict[str, str] | None = None, **flags: object) -> Loaded:
    given = [Given(name.replace("__", "."), value, f"--{name}") for name, value in flags.items()]
    return load_settings(file, {"HOME": "/", **(environment or {})}, given)


def faults(file: Path | None = None, environment: dict[str, str] | None = None, **flags: object) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(file, environment, **flags)
    assert caught.value.exit_code == 2
    return caught.value.faults


def test_defaults_need_nothing() -> None:
    loaded = load()
    assert loaded.settings.stream_url == "log:streamlearn-state/stream.log"
    assert loaded.settings.checkpoint.every_examples == 10_000
    assert loaded.origins["learner.batch_size"] == "default"
    assert loaded.origins["learner.eviction"] == "method er+t"
    assert loaded.settings.records.limits().record_bytes == 1024 * 1024


def test_file_then_environment_then_flags(tmp_path: Path) -> None:
    file = written(
        tmp_path / "s.toml", "threads = 3\nquiet = true\n[learner]\nbuffer_size = 300\nseed = 3\nbatch_size = 3"
    )
    environment = {"STREAMLEARN_LEARNER__SEED": "4", "STREAMLEARN_LEARNER__BATCH_SIZE": "4"}
    loaded = load(file, environment, learner__batch_size=5)
    learner = loaded.settings.learner
    assert (loaded.settings.threads, learner.buffer_size, learner.seed, learner.batch_size) == (3, 300, 4, 5)
    assert loaded.origins["threads"] == f"file {file}"
    assert loaded.origins["learner.seed"] == "STREAMLEARN_LEARNER__SEED"
    assert loaded.origins["learner.batch_size"] == "--learner__batch_size"


def test_text_becomes_what_the_setting_is() -> None:
    environment = {
        "STREAMLEARN_QUIET": "true",
        "STREAMLEARN_CHECKPOINT__EVERY_SECONDS": "1.5",
        "STREAMLEARN_LEARNER__CLASSES": "boot, shoe",
        "STREAMLEARN_LEARNER__NORMALISE": '{"mean": [0.5], "std": [0.25]}',
        "STREAMLEARN_STATE_DIR": "/var/lib/x",
        "STREAMLEARN_LOG__LEVEL": "",
    }
    settings = load(environment=environment).settings
    assert settings.quiet is True
    assert settings.checkpoint.every_seconds == 1.5
    assert settings.learner.classes == ["boot", "shoe"]
    assert settings.learner.normalise.std == [0.25]  # type: ignore[union-attr]
    assert settings.stream_url == "log:/var/lib/x/stream.log"
    assert from_text("learner.classes", '["a,b"]', "--set").value == ["a,b"]


def test_all_faults_at_once_with_name_and_source(tmp_path: Path) -> None:
    file = written(
        tmp_path / "s.toml",
        'threads = "many"\nlearnr = 1\n[learner]\nbufer_size = 5\n[records]\nmax_bad_ratio = 7\n[nothing]\nlike = 1',
    )
    environment = {"STREAMLEARN_LOG__FORMAT": "xml", "STREAMLEARN_LEARNER__RATE": "1", "STREAMLEARN_STATEDIR": "x"}
    found = "\n".join(faults(file, environment, checkpoint__keep=0))
    for expected in (
        f"threads: input should be a valid integer, unable to parse string as an integer (from file {file})",
        f"learner.bufer_size: there is no such setting; did you mean learner.buffer_size? (from file {file})",
        f"records.max_bad_ratio: input should be less than or equal to 1 (from file {file})",
        "nothing.like: there is no such setting",
        "learnr: there is no such setting",
        "log.format: input should be 'auto', 'human' or 'json' (from STREAMLEARN_LOG__FORMAT)",
        "learner.rate: there is no such setting",
        "STREAMLEARN_STATEDIR: there is no such variable; did you mean STREAMLEARN_STATE_DIR?",
        "checkpoint.keep: input should be greater than or equal to 1 (from --checkpoint__keep)",
    ):
        assert expected in found
    assert len(found.splitlines()) == 9


def test_a_name_in_the_wrong_table_is_found() -> None:
    assert "did you mean learner.buffer_size?" in faults(buffer_size=3)[0]


def test_variables_of_others_are_left_alone() -> None:
    load(
        environment={
            "STREAMLEARN_SERVICE_HOST": "10.0.0.1",
            "STREAMLEARN_PORT": "tcp://x",
            "STREAMLEARN_REQUIRE_ALL": "1",
        }
    )


def test_settings_that_make_no_sense_together() -> None:
    (fault,) = faults(learner__method="sgd", learner__replay_batch=5)
    assert fault.startswith("learner: method sgd does not replay")


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "No such file"), ("a = ", "is not TOML"), ("learner = 1", "is a table, not a value")],
)
def test_a_bad_file(tmp_path: Path, content: str | None, expected: str) -> None:
    file = tmp_path / "s.toml"
    if content is not None:
        file.write_text(content)
    assert expected in faults(file)[0]


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_bytes(b"\xff\xfe")
    assert "not a text file" in faults(file)[0]
    assert "cannot be read" in faults(tmp_path)[0]


def test_what_only_the_stream_knows_is_told_among_the_rest() -> None:
    given = [Given("stream.url", "x", "--stream"), Given("threads", 0, "--threads")]
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {"HOME": "/"}, given, lambda stream: [f"stream: {stream.url} is no stream"])
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["stream", "threads"]


class TestSecrets:
    def test_from_the_environment(self) -> None:
        loaded = load(environment={PASSWORD: "hunter2"})
        password = loaded.settings.stream.kafka.password
        assert password is not None
        assert password.get_secret_value() == "hunter2"
        assert "hunter2" not in repr(loaded)
        assert secret_values(loaded.settings) == ["hunter2"]
        assert secret_values(load().settings) == []

    def test_from_a_file_that_environment_or_toml_names(self, tmp_path: Path) -> None:
        secret = written(tmp_path / "secret", "hunter2\n")
        toml = written(tmp_path / "s.toml", f'[stream.kafka]\npassword_file = "{secret}"')
        for loaded in (load(toml), load(environment={f"{PASSWORD}_FILE": str(secret)})):
            password = loaded.settings.stream.kafka.password
            assert password is not None
            assert password.get_secret_value() == "hunter2"

    def test_the_higher_source_wins(self, tmp_path: Path) -> None:
        toml = written(tmp_path / "s.toml", f'[stream.kafka]\npassword_file = "{written(tmp_path / "a", "file")}"')
        password = load(toml, {PASSWORD: "environment"}).settings.stream.kafka.password
        assert password is not None
        assert password.get_secret_value() == "environment"

    def test_never_in_toml_or_a_flag(self, tmp_path: Path) -> None:
        toml = written(tmp_path / "s.toml", '[stream.kafka]\npassword = "hunter2"')
        for found in (faults(toml), faults(stream__kafka__password="hunter2")):
            assert len(found) == 1
            assert PASSWORD in found[0]
            assert "hunter2" not in found[0]

    def test_faults_of_the_file(self, tmp_path: Path) -> None:
        assert "cannot be read: No such file" in faults(environment={f"{PASSWORD}_FILE": "/nowhere"})[0]
        empty = written(tmp_path / "empty", "\n")
        assert "is empty" in faults(environment={f"{PASSWORD}_FILE": str(empty)})[0]
        twice = faults(environment={f"{PASSWORD}_FILE": str(written(tmp_path / "a", "x")), PASSWORD: "y"})
        assert "one of the two is enough" in twice[0]
