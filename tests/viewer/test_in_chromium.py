"""What a reader sees, and what a model's text does not do, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import chromium
import pytest

from llmpipe.core.artifact import Artifact
from llmpipe.viewer.server import Server
from llmpipe.viewer.single import write

pytestmark = pytest.mark.skipif(chromium.PATH is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Chromium]:
    with chromium.Chromium() as browser:
        yield browser


@pytest.fixture(autouse=True)
def quiet(browser: chromium.Chromium) -> Iterator[None]:
    """Nothing is asked for or complained of that is not the server's own."""
    browser.requests.clear()
    browser.said.clear()
    yield
    assert browser.said == []


def test_a_list_is_filtered_by_its_form(browser: chromium.Chromium, server: Server) -> None:
    browser.open(f"{server.url}list?artifact=verdicts")
    browser.run("document.querySelector('select[name=status]').value = 'wrong'")
    browser.run("document.querySelector('form.filters button').click()")
    browser.loaded()
    statuses = "[...document.querySelectorAll('.rows .status')].map(e => e.textContent).join()"
    assert browser.run(statuses) == "wrong,wrong,wrong"
    assert browser.run("document.querySelector('[name=status]').value") == "wrong"
    assert all(url.startswith(server.url) for url in browser.requests)


def test_keys_go_through_a_list_and_its_rows(browser: chromium.Chromium, server: Server) -> None:
    browser.open(f"{server.url}list?artifact=verdicts")
    for key in ("/", "x", "Escape", "j", "j", "Enter"):
        browser.press(key)
    browser.loaded()
    assert browser.run("document.querySelector('h1').textContent") == "verdicts · row 1"
    browser.press("ArrowRight")
    browser.loaded()
    assert browser.run("document.querySelector('h1').textContent") == "verdicts · row 2"
    browser.press("u")
    browser.loaded()
    assert browser.run("document.querySelectorAll('.rows tbody tr').length") == 6


@pytest.mark.parametrize("math", ["", "1"])
def test_what_a_model_wrote_stays_text(
    browser: chromium.Chromium, server: Server, math: str
) -> None:
    browser.open(f"{server.url}row?artifact=verdicts&n=0&math={math}")
    assert browser.run("document.title") == "verdicts · row 0 · llmpipe"
    turn = "[...document.querySelectorAll('.turn.assistant .text')].at(-1)"
    assert "<script>document.title = 'gone'</script>" in browser.run(f"{turn}.textContent")
    assert browser.run(f"{turn}.querySelectorAll('script, img, a, [href], [style]').length") == 0
    assert browser.run("document.querySelectorAll('body script, img, iframe').length") == 0
    if not math:
        assert "javascript:document" in browser.run(f"{turn}.textContent")
    assert {url.removeprefix(server.url).partition("?")[0] for url in browser.requests} <= {
        *("row", "static/viewer.css", "static/viewer.js", "static/icon.svg"),
    }


def test_formulas_and_mazes_are_drawn(browser: chromium.Chromium, server: Server) -> None:
    browser.open(f"{server.url}row?artifact=problems&n=0")
    height = "document.querySelector('mfrac').getBoundingClientRect().height"
    assert browser.run(height) > 1.2 * browser.run(f"{height.replace('mfrac', 'mfrac > *')}")
    browser.open(f"{server.url}row?artifact=verdicts&n=5")
    assert browser.run("document.querySelector('.maze svg').getBoundingClientRect().width") == 96
    assert browser.run("document.querySelectorAll('.maze .x').length") == 1
    colour = "getComputedStyle(document.querySelector('.maze .g')).fill"
    browser.dark(False)
    light = browser.run(colour)
    browser.dark(True)
    assert browser.run(colour) != light


def test_a_page_that_stands_alone_filters_by_itself(
    browser: chromium.Chromium, tree: Path, tmp_path: Path
) -> None:
    write(Artifact.open(tree / "verdicts"), tmp_path / "page.html", 500)
    browser.open((tmp_path / "page.html").as_uri())
    rows = "[...document.querySelectorAll('.row:not([hidden]) .number')]"
    shown = f"{rows}.map(e => e.textContent).join()"
    assert browser.run(shown) == "0,1,2,3,4,5"

    def put(name: str, value: str) -> str:
        browser.run(
            f"(() => {{ const e = document.querySelector('[name={name}]'); e.value = '{value}';"
            " e.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
        found: str = browser.run(shown)
        return found

    assert put("status", "wrong") == "1,3,5"
    assert put("length_from", "18") == "1,5"
    assert put("text", "MEETS a wall") == "5"
    assert browser.run("document.querySelector('#count').textContent") == "1 shown; 6 of 6 rows"
    browser.run("document.activeElement.blur()")
    browser.press("j")
    browser.press("Enter")
    assert browser.run("document.querySelector('.row.chosen').open")
    assert browser.run("document.title") == "verdicts · llmpipe"
    assert len(browser.requests) == 1
