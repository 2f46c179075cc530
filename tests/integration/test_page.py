"""The live page, in a real browser, on a real daemon."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from streamlearn.records.encode import encode_event, encode_example
from streamlearn.sample import NAMES
from streamlearn.stream.url import open_stream
from tests.conftest import missing
from tests.integration.daemon import FAST, SAMPLE, Daemon

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 30.0  # seconds


class Look:
    """A page, and all it asked for and complained about."""

    def __init__(self, context: Any, url: str) -> None:
        self.url, self.page = url, context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "console", lambda message: self.complaints.append(message.text) if message.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self) -> Look:
        self.page.goto(self.url)
        return self

    def shows(self, selector: str, words: str) -> None:
        """Wait until an element contains these words."""
        self._wait(lambda: words in self.text(selector), lambda: f"{words!r} in {self.text(selector)!r}")

    def waits_for(self, script: str) -> None:
        self._wait(lambda: self.page.evaluate(script), lambda: script)

    def _wait(self, done: Callable[[], object], what: Callable[[], str]) -> None:
        """From here, not inside the page: its policy lets nobody evaluate anything there."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, f"not shown: {what()}"
            self.page.wait_for_timeout(50)

    def text(self, selector: str) -> str:
        return str(self.page.text_content(selector)).replace("\u00a0", " ")

    def count(self, selector: str) -> int:
        return int(self.page.locator(selector).count())

    def fits(self) -> bool:
        """No scrolling to the side."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        missing("no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def look(browser: Any) -> Iterator[Any]:
    """Opens pages; each sees to it that nothing was asked of any other host and nothing went wrong."""
    opened: list[tuple[Any, Look]] = []

    def open(url: str, *, width: int = 1280, **options: Any) -> Look:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        opened.append((context, Look(context, url)))
        return opened[-1][1].open()

    yield open
    for context, look in opened:
        context.close()
        assert all(url.startswith((look.url, "blob:")) for url in look.requests), look.requests
        assert look.complaints == []


def append(url: str, *records: Any) -> None:
    stream = open_stream(url)
    stream.append(list(records))
    stream.close()


def groups_of_pictures(first: int, last: int) -> Iterator[Any]:
    """Two classes at a time, each group ended, then held-out pictures of all so far."""
    for group in range(first, last):
        for k in np.flatnonzero(SAMPLE.train_labels // 2 == group)[:200]:
            yield encode_example(SAMPLE.train[k], NAMES[SAMPLE.train_labels[k]], id=f"train-{k}")
        yield encode_event("end-of-group")
        for k in np.flatnonzero(SAMPLE.test_labels // 2 <= group)[::5]:
            yield encode_example(SAMPLE.test[k], NAMES[SAMPLE.test_labels[k]], split="eval")
    yield encode_event("flush")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Has learned two groups of classes, and refused one record."""
    folder = tmp_path_factory.mktemp("page")
    append(f"log:{folder / 'stream.log'}", *groups_of_pictures(0, 2), encode_example(SAMPLE.train[0][:5], "odd"))
    with Daemon(folder / "state") as daemon:
        daemon.ready()
        daemon.has_learned(400)
        yield daemon
        daemon.stop()


def a_picture_file(name: str, size: tuple[int, int] | None = None) -> tuple[str, dict[str, Any]]:
    """One of the test pictures, as a browser uploads it, and the class the model gives it."""
    pixels = SAMPLE.test[np.flatnonzero(SAMPLE.test_labels == NAMES.index(name))[0]]
    picture, file = Image.fromarray(pixels), BytesIO()
    if size is not None:
        picture = picture.convert("RGB").resize(size)
    picture.save(file, "PNG")
    return name, {"name": "picture.png", "mimeType": "image/png", "buffer": file.getvalue()}


# ---------------------------------------------------------------------- on pictures


def test_the_page_fills_while_it_learns(pictures: Daemon, look: Any) -> None:
    page = look(pictures.http_url)
    page.shows("#facts", "400 examples")
    assert page.text("#stream-url").endswith("stream.log")
    page.waits_for("document.querySelectorAll('#accuracy-chart .series[d]').length === 2")
    assert page.count("#group-rows tr") == 2
    page.shows("#refused-recent", "this daemon learns uint8 of (28, 28)")
    assert page.text("#refused-reasons") == "wrong-shape1"
    append(f"log:{pictures.state_dir.parent / 'stream.log'}", *groups_of_pictures(2, 3))
    page.shows("#facts", "600 examples")
    page.shows("#knows-why", "6 classes in 3 groups")
    page.shows("#event-list", f"New class {NAMES[4]}")  # told as it happened
    page.waits_for("document.querySelectorAll('#accuracy-chart .series[d]').length === 3")
    page.waits_for("document.querySelectorAll('#accuracy-chart .mark-new').length === 3")
    page.waits_for("document.querySelectorAll('#matrix .hit').length >= 5")
    page.shows("#forgets-why", "group")
    page.shows("#bias-why", "The newest group gets")
    page.shows("#saved-facts", "examples")
    assert page.text("#state-word") in ("Idle", "Learning")
    # Values under the pointer, by keyboard as well; and the other way of measuring.
    page.page.hover("#accuracy-chart", position={"x": 400, "y": 120})
    assert "after" in page.text("#tip")
    page.page.focus("#accuracy-chart svg")
    page.page.keyboard.press("ArrowLeft")
    assert "group-1" in page.text("#tip")
    page.page.click("#on-prequential")
    page.shows("#accuracy-note", "before it is learned")


def test_the_wall_shows_what_is_remembered_and_tries_it(pictures: Daemon, look: Any) -> None:
    page = look(pictures.http_url)
    page.page.locator("#buffer").scroll_into_view_if_needed()
    page.waits_for("document.querySelectorAll('#wall img').length === 60")
    page.waits_for(
        "[...document.querySelectorAll('#wall img')].slice(0, 5).every((image) => image.naturalWidth === 28)"
    )
    assert "loss" in page.page.locator("#wall button").first.get_attribute("aria-label")
    label = page.page.locator("#wall button").first.get_attribute("aria-label").split(",")[0]
    page.page.locator("#wall button").first.hover()
    assert page.text("#tip").startswith(label)
    page.page.locator("#wall button").first.click()
    page.waits_for("document.querySelectorAll('#try-answer .scores li').length >= 4")
    assert "labelled" in page.text("#try-answer")
    page.page.select_option("#buffer-class", label)
    page.waits_for("document.querySelectorAll('#wall img').length < 60")
    assert {words.split(",")[0] for words in page.page.locator("#wall button").evaluate_all(
        "buttons => buttons.map((button) => button.getAttribute('aria-label'))"
    )} == {label}  # fmt: skip


def test_a_picture_is_answered_whatever_its_size(pictures: Daemon, look: Any) -> None:
    page = look(pictures.http_url)
    page.shows("#try-note", "28 × 28 pixels, grey")
    label, file = a_picture_file("Trouser")
    page.page.set_input_files("#try-file", file)
    page.shows("#try-answer .said", label)
    asked = pictures.ask("POST", "/v1/predict", file["buffer"], {"Content-Type": "image/png"}).json["predictions"][0]
    assert page.text("#try-answer .scores li") == f"{label}{asked['probability'] * 100:.0f} %"
    assert "scaled" not in page.text("#try-answer")
    label, file = a_picture_file("Trouser", (300, 200))
    page.page.set_input_files("#try-file", file)
    page.shows("#try-answer", "scaled from 300 × 200 to 28 × 28")
    page.page.set_input_files("#try-file", {"name": "x.png", "mimeType": "image/png", "buffer": b"no picture"})
    page.shows("#try-answer", "This is no picture that your browser can read.")


def test_narrow_dark_and_wide(pictures: Daemon, look: Any) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    narrow = look(pictures.http_url, width=320, color_scheme="dark")
    narrow.shows("#knows-number", "%")
    narrow.waits_for("document.querySelectorAll('#accuracy-chart .series[d]').length >= 2")
    narrow.waits_for("document.querySelectorAll('#matrix .hit').length > 0")
    assert narrow.fits()
    assert narrow.page.evaluate(background) == "rgb(14, 19, 24)"
    narrow.page.click("#theme")
    assert narrow.page.evaluate(background) == "rgb(243, 245, 247)"
    narrow.page.reload()
    assert narrow.page.evaluate(background) == "rgb(243, 245, 247)"  # remembered
    wide = look(pictures.http_url, width=1920)
    wide.shows("#knows-number", "%")
    assert wide.fits()


def test_a_label_is_a_text_whatever_it_says(pictures: Daemon, look: Any) -> None:
    label = "<img src=http://elsewhere.invalid/ onerror=alert(1)>"
    append(
        f"log:{pictures.state_dir.parent / 'stream.log'}", encode_example(SAMPLE.train[0], label), encode_event("flush")
    )
    page = look(pictures.http_url)
    page.shows("#event-list", label)
    page.shows("#group-rows", label)


# ---------------------------------------------------------------------- when something is away


def test_it_says_who_is_away_and_comes_back_by_itself(tmp_path: Path, look: Any) -> None:
    append(f"log:{tmp_path / 'stream.log'}", *groups_of_pictures(0, 1))
    with Daemon(tmp_path / "state") as daemon:
        daemon.ready()
        daemon.has_learned(200)
        url = daemon.http_url
        page = look(url)
        page.shows("#state-word", "Idle")
        daemon.kill_child("learner")
        page.shows("#state-word", "Learner away")
        assert "learner" in page.text("#state-why")
        assert "comes back by itself" in page.text("#state-do")
        label, file = a_picture_file("Trouser")
        page.page.set_input_files("#try-file", file)
        page.shows("#try-answer .said", label)  # answered meanwhile
        page.shows("#state-word", "Idle")
        daemon.ask("POST", "/v1/admin/pause", headers=daemon.token)
        page.shows("#state-word", "Paused")
        assert daemon.stop(signal.SIGTERM) == 0
        page.shows("#state-word", "Cannot be reached")
    with Daemon(tmp_path / "state", http=url.removeprefix("http://")) as again:
        page.shows("#state-word", "Paused")  # as it was left
        again.ask("POST", "/v1/admin/resume", headers=again.token)
        page.shows("#state-word", "Idle")
        page.page.close()
    # What the browser itself says of requests that failed is no fault of the page.
    page.complaints[:] = [text for text in page.complaints if "Failed to load resource" not in text]


# ---------------------------------------------------------------------- with a token, many classes, no pictures


def many_classes(classes: int, together: int, each: int) -> Iterator[Any]:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(classes, 16)).astype(np.float32)
    for first in range(0, classes, together):
        for k in np.repeat(np.arange(first, min(first + together, classes)), each):
            yield encode_example(centres[k], f"class {k}", group=f"cohort {first // together}")
        yield encode_event("end-of-group")
    for k in range(classes):
        yield encode_example(centres[k], f"class {k}", split="eval")
    yield encode_event("flush")


def test_a_token_is_asked_for_once(tmp_path: Path, look: Any) -> None:
    append(f"log:{tmp_path / 'stream.log'}", *many_classes(30, 5, 4))
    with Daemon(tmp_path / "state", environment={"STREAMLEARN_HTTP__TOKEN": "secret"}) as daemon:
        page = look(daemon.http_url)
        page.page.fill("#token", "wrong")
        page.page.keyboard.press("Enter")
        page.shows("#token-why", "not right")
        page.page.fill("#token", "secret")
        page.page.keyboard.press("Enter")
        page.shows("#knows-why", "30 classes in 6 groups")
        page.shows("#event-list", "New class")  # events need it, too
        page.waits_for("document.querySelectorAll('#matrix .hit').length > 0")
        page.waits_for("document.querySelectorAll('#matrix .name').length === 60")
        page.page.reload()
        page.shows("#knows-why", "30 classes in 6 groups")
        assert not page.page.locator("#token-dialog").is_visible()
        page.page.close()
        page.complaints[:] = [text for text in page.complaints if "401" not in text]


def test_three_hundred_classes_stay_usable(tmp_path: Path, look: Any) -> None:
    append(f"log:{tmp_path / 'stream.log'}", *many_classes(300, 8, 4))
    settings = {**FAST, "learner.model": "linear", "learner.buffer_size": 400}
    with Daemon(tmp_path / "state", settings=settings) as daemon:
        daemon.ready()
        daemon.has_learned(1200)
        page = look(daemon.http_url, width=360)
        page.shows("#knows-why", "300 classes in 38 groups")
        page.waits_for("document.querySelectorAll('#accuracy-chart .series[d]').length === 11")
        assert page.count("#group-rows tr") == 11
        page.page.click("#groups-all")
        assert page.count("#group-rows tr") == 38
        page.shows("#confusion-note", "their groups")
        assert page.fits()
        page.page.locator("#wall").scroll_into_view_if_needed()
        page.waits_for("document.querySelectorAll('#wall .sparkline').length === 60")
        page.page.click("#wall-more")
        page.waits_for("document.querySelectorAll('#wall .sparkline').length === 120")
        page.page.locator("#wall button").first.click()
        page.waits_for("document.querySelectorAll('#try-answer .scores li').length === 5")
        page.page.fill("#try-values", "1, 2, 3")
        page.page.click("#try-ask")
        page.shows("#try-answer", "3 numbers; the model takes 16.")
        page.page.close()
