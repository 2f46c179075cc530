"""The files of the page: whole, from here only, and kept by browsers as they should be."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from streamlearn.serving import live_page
from tests.http.client import Running

FOLDER = Path(live_page.__file__).parent / "page"
FILES = sorted(path.name for path in FOLDER.iterdir())


def test_the_page_names_files_that_are_there(running: Running) -> None:
    answer = running.ask("GET", "/")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"
    named = re.findall(r'(?:href|src)="(/page/[^"]+)"', answer.body.decode())
    assert len(named) >= 6
    for path in named:
        file = running.ask("GET", path)
        assert file.status == 200
        assert "immutable" in file.headers["cache-control"]
    folder = named[0].rpartition("/")[0]
    for name in FILES:
        assert running.ask("GET", f"{folder}/{name}").status == 200
    assert running.ask("GET", f"{folder}/none.js").code == "unknown-path"
    assert running.ask("GET", "/page/0000000000000000/app.js").code == "unknown-path"
    assert running.ask("GET", f"{folder}/..%2Flive_page.py").status == 404


def test_nothing_inline_and_nothing_from_elsewhere(running: Running) -> None:
    policy = running.ask("GET", "/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    page = (FOLDER / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


@pytest.mark.parametrize("name", FILES)
def test_no_address_of_any_other_host(name: str) -> None:
    text = (FOLDER / name).read_text()
    names_of_formats = {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\"')\s]*", text)) <= names_of_formats
    assert "innerHTML" not in text
    assert "eval(" not in text
    assert len(text.splitlines()) < 200


def test_modules_import_what_there_is() -> None:
    for path in FOLDER.glob("*.js"):
        text = path.read_text()
        for names, source in re.findall(r"import {([^}]+)} from \"\./([\w.]+)\"", text):
            there = (FOLDER / source).read_text()
            for name in names.split(","):
                assert re.search(rf"export (?:async )?(?:function|const|class) {name.strip()}\b", there), (path, name)


def test_small_and_not_sent_twice(running: Running) -> None:
    plain = running.ask("GET", "/")
    zipped = running.ask("GET", "/", headers={"Accept-Encoding": "gzip, br"})
    assert gzip.decompress(zipped.body) == plain.body
    assert len(zipped.body) < len(plain.body) / 2
    again = running.ask("GET", "/", headers={"If-None-Match": plain.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert sum((FOLDER / name).stat().st_size for name in FILES) < 200_000


def test_the_package_takes_them_along() -> None:
    import tomllib

    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert "serving/page/*" in settings["tool"]["setuptools"]["package-data"]["streamlearn"]
