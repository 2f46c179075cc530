"""The example file is complete and loads; what is shown tells no secret."""

from __future__ import annotations

import re
from pathlib import Path

from streamlearn.settings.daemon import Settings
from streamlearn.settings.describe import MASKED, example_toml, in_force
from streamlearn.settings.sources import load_settings
from streamlearn.settings.tree import all_settings


def load_text(path: Path, text: str) -> Settings:
    path.write_text(text)
    return load_settings(path, {"HOME": "/"}).settings


def test_the_example_changes_nothing(tmp_path: Path) -> None:
    assert load_text(tmp_path / "s.toml", example_toml()) == load_settings(None, {"HOME": "/"}).settings


def test_the_example_with_every_value_taken_in_loads(tmp_path: Path) -> None:
    taken_in = re.sub(r"^#(?=\w)", "", example_toml(), flags=re.MULTILINE)
    settings = load_text(tmp_path / "s.toml", taken_in)
    assert settings.checkpoint == Settings().checkpoint
    assert settings.preset == "split-fashion-mnist"


def test_the_example_names_every_setting() -> None:
    text = example_toml()
    for name in all_settings():
        assert re.search(rf"^# ?{name.rpartition('.')[2]}\b", text, re.MULTILINE), name
    assert max(map(len, text.splitlines())) < 200


def test_what_is_in_force_hides_secrets() -> None:
    loaded = load_settings(None, {"STREAMLEARN_STREAM__KAFKA__PASSWORD": "hunter2"})
    shown = {one.name: one for one in in_force(loaded)}
    assert shown["stream.kafka.password"].value == MASKED
    assert shown["stream.kafka.password"].origin == "STREAMLEARN_STREAM__KAFKA__PASSWORD"
    assert shown["state_dir"].value == "streamlearn-state"
    assert set(shown) == set(all_settings())
    assert "hunter2" not in repr(shown)
