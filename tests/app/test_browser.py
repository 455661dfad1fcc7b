"""Report and playground in a real browser. Skipped where there is no Chromium."""

import csv
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import internalize

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; install it, as with: apt install chromium"),
    pytest.mark.xdist_group("app"),
]


@pytest.fixture(scope="module")
def browser() -> "Iterator[sync_api.Browser]":
    with sync_api.sync_playwright() as playwright:
        sync_api.expect.set_options(timeout=20_000)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page that remembers what the browser complains about; it tells each refusal of the server, which may be expected."""

    def __init__(self, browser: "sync_api.Browser", address: str, refusals: bool = False) -> None:
        self.refusals = refusals
        self.page = browser.new_page(viewport={"width": 1200, "height": 900})
        self.page.set_default_timeout(20_000)
        self.problems: list[str] = []
        self.page.on("console", lambda message: self.problems.append(message.text) if message.type != "log" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.goto(address)

    def __enter__(self) -> "Tab":
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.page.close()
        if kind is None:
            assert not [problem for problem in self.problems if not (self.refusals and "400 (Bad Request)" in problem)]

    def text(self, selector: str, pattern: str) -> str:
        """The text of an element, once it matches."""
        place = self.page.locator(selector).first
        sync_api.expect(place).to_have_text(re.compile(pattern))
        return str(place.text_content())


def test_playing(browser: "sync_api.Browser", address: str, runs: list[internalize.Run]) -> None:
    with Tab(browser, address) as tab:
        page = tab.page
        first, second = "section:nth-of-type(1)", "section:nth-of-type(2)"
        assert tab.text(f"{first} h2", ".") == runs[0].path.name
        tab.text(f"{second} .fast .cost", r"Right: \d\. 1 token in")  # a random input was asked at once
        page.get_by_label("slow motion").uncheck()
        page.get_by_label("Input", exact=True).fill("1 0 1 1 0 0")
        page.get_by_label("Input", exact=True).press("Enter")
        known = runs[0].answer_with(5, "1 0 1 1 0 0")
        tab.text(f"{first} .slow .cost", r"6 tokens in [\d.]+ ms")
        written = page.locator(f"{first} .slow .token").all_text_contents()
        assert written == [*known.chain, *known.answer]
        # The slider, by keyboard: one to the left is one unit more.
        slider = page.locator(f"{first} input[type=range]")
        tab.text(f"{first} .where", "Stage 5: no chain")
        slider.press("ArrowLeft")
        slider.press("ArrowLeft")
        tab.text(f"{first} .where", "Stage 3: 2 chain tokens first")
        fewer = runs[0].answer_with(2, "1 0 1 1 0 0")
        tab.text(f"{first} .at", "Right" if fewer.right else "Wrong")
        assert page.locator(f"{first} .at .token").all_text_contents() == [*fewer.chain, *fewer.answer]
        assert page.locator(f"{first} .strip [aria-pressed=true]").text_content() == "2"
        # Failures on a split; one of them is asked again.
        page.get_by_label("Test inputs").select_option("sticky:0.8")
        page.locator(f"{first} .find").click()
        tab.text(f"{first} .found", r"With 2 chain tokens first, \d+ of 500 test inputs \(sticky:0.8\) are answered wrongly")
        failed = page.locator(f"{first} tbody tr").first
        text = failed.locator("td").first.text_content()
        failed.get_by_role("button").click()
        assert page.get_by_label("Input", exact=True).input_value() == text
        right, said = (failed.locator("td").nth(at).text_content() for at in (1, 2))
        tab.text(f"{first} .at", f"Wrong: it says {said}, right is {right}")
        page.locator(f"{second} .find").click()
        tab.text(f"{second} .found", "0 of 500")


def test_the_last_question_wins(browser: "sync_api.Browser", address: str) -> None:
    with Tab(browser, address) as tab:
        tab.text("section:nth-of-type(2) .fast .cost", "1 token in")
        tab.page.get_by_label("slow motion").uncheck()
        for text in ("1 1 1 1 1 1", "0 0 0 0 0 0", "1 0 0 0 0 0"):  # none is waited for
            tab.page.get_by_label("Input", exact=True).fill(text)
            tab.page.get_by_label("Input", exact=True).press("Enter")
        tab.text("section:nth-of-type(2) .at", r"Right: 1\.")
        tab.page.wait_for_timeout(500)
        tab.text("section:nth-of-type(2) .at", r"Right: 1\.")  # the exact one: the last input has one 1


def test_a_mistake_on_the_page(browser: "sync_api.Browser", address: str) -> None:
    with Tab(browser, address, refusals=True) as tab:
        tab.text("section .fast .cost", "1 token in")
        tab.page.get_by_label("Input", exact=True).fill("1 0 <b>2</b>")
        tab.page.get_by_role("button", name="Ask", exact=True).click()
        tab.text("section .problem", "the input has 3 words; C2 takes 6 symbols here")
        tab.page.get_by_label("Input", exact=True).fill("1 0 1 1 0 <b>2</b>")
        tab.page.get_by_role("button", name="Ask", exact=True).click()
        tab.text("section .problem", 'word 6 of the input is "<b>2</b>"')


def test_reading_a_report(browser: "sync_api.Browser", runs: list[internalize.Run], tmp_path: Path) -> None:
    page_of = (runs[0].path / "report.html").as_uri()
    with Tab(browser, page_of) as tab:
        page = tab.page
        dot = page.locator("svg circle").first
        dot.hover()
        tip = page.locator("#tip")
        assert tip.is_visible()
        assert tip.text_content() == dot.locator("title").text_content()
        figure = page.locator("figure").first
        title = str(figure.locator("svg").get_attribute("aria-label"))
        files = {}
        for kind in ("SVG", "PNG", "CSV"):
            button = figure.get_by_role("button", name=f"Download as {kind}: {title}")
            button.focus()
            with page.expect_download() as download:
                button.press("Enter")
            files[kind] = tmp_path / download.value.suggested_filename
            download.value.save_as(files[kind])
        assert all(path.suffix == f".{kind.lower()}" for kind, path in files.items())
        rows = [row for row in csv.reader(files["CSV"].read_text().splitlines()) if row[0] == "in distribution"]
        known = runs[0].frontier().group_by("shown").mean().sort("shown", descending=True)
        assert [float(row[1]) for row in rows] == known["shown"].to_list()
        assert [float(row[2]) for row in rows] == pytest.approx(known["id"].to_list(), abs=1e-5)
        assert files["PNG"].read_bytes().startswith(b"\x89PNG")
        assert files["PNG"].stat().st_size > 5_000
        page.goto(files["SVG"].as_uri())  # it stands by itself
        assert page.locator("svg circle").count() > 0


def test_light_dark_and_paper(browser: "sync_api.Browser", runs: list[internalize.Run]) -> None:
    with Tab(browser, (runs[0].path / "report.html").as_uri()) as tab:
        page = tab.page
        colours = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            contrasts = page.evaluate(CONTRASTS)
            assert min(contrasts.values()) >= 4.5, contrasts  # WCAG AA
        assert colours[0] != colours[1]
        assert page.locator("figcaption").first.is_visible()
        page.emulate_media(media="print")
        assert not page.locator("figcaption").first.is_visible()
        page.set_viewport_size({"width": 360, "height": 700})
        page.emulate_media(media="screen")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


# The contrast of each kind of text with what is behind it.
CONTRASTS = """() => {
  const rgb = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (colour) => {
    const linear = (part) => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
    const [r, g, b] = rgb(colour).map((part) => linear(part / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = light(getComputedStyle(document.body).backgroundColor);
  const found = {};
  for (const [name, property] of [["p", "color"], [".right", "color"], [".wrong", "color"], ["figcaption button", "color"],
      ["svg text", "fill"], ["svg text.a", "fill"], ["svg text.b", "fill"], ["svg text.c", "fill"]]) {
    const place = document.querySelector(name);
    if (!place) continue;
    const front = light(getComputedStyle(place)[property]);
    found[name] = (Math.max(front, behind) + .05) / (Math.min(front, behind) + .05);
  }
  return found;
}"""
