from __future__ import annotations

import html
import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from llmpipe.core.errors import UserError
from llmpipe.reports.files import PICTURES, report, write
from llmpipe.reports.runs import load
from llmpipe.stages import compare

HOSTILE = "</style><script>alert(1)</script>|`$x$ 模型\u202e"


class Page(HTMLParser):
    """The tags, the attributes and the cells of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def cells(markdown: str) -> list[list[str]]:
    """The cells of all tables in Markdown, as they are shown."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    split = (re.split(r"(?<!\\)\|", line)[1:-1] for line in lines)
    return [[re.sub(r"\\(\W|_)", r"\1", cell.strip()) for cell in row] for row in split]


def test_the_numbers_are_those_of_the_results(evaluate) -> None:
    path = evaluate("a", {"L1": "ccww", "L2": "wwct", "L3": "nwww"})
    found = json.loads((path / "results.json").read_text())
    files = report(load([path]))
    page, markdown = Page(files["report.html"].decode()), cells(files["report.md"].decode())
    for rows in (page.rows, markdown):
        for name, m in found["metrics"].items():
            intervals = (f"{m[low]:.4f} to {m[high]:.4f}" for low, high in _ENDS)
            assert [name, f"{m['value']:.4f}", *intervals] in rows
        for curve in ("pass@k", "pass^k"):
            for m in found["curves"][curve]:
                intervals = (f"{m[low]:.4f} to {m[high]:.4f}" for low, high in _ENDS)
                assert ["a", str(m["k"]), f"{m['value']:.4f}", *intervals] in rows
        assert ["truncated", "8.33%"] in rows
        assert ["no answer", "8.33%"] in rows
        (level,) = (r for r in rows if r[:2] == ["L1", "1"])  # its name, and one problem
        values = (m["value"] for m in found["by"]["level"]["L1"]["metrics"].values())
        assert level == ["L1", "1", *(f"{v:.4f}" for v in values), "0.00%", "0.00%", "0.00%"]
        # Of four samples: one problem has none right, one has one, one has two.
        assert [r for r in rows if r[0] in "01234" and len(r) == 3] == [
            ["0", "1", "33.33%"],
            ["1", "1", "33.33%"],
            ["2", "1", "33.33%"],
            ["3", "0", "0.00%"],
            ["4", "0", "0.00%"],
        ]
        share = ["3", "25.00%", "7", "58.33%", "1", "8.33%", "1", "8.33%", "0", "0.00%"]
        assert ["a", *share] in rows
        right = found["lengths"]["correct"]
        assert ["a", "correct", "3", *(str(right[c]) for c in ("mean", "p10", "p50"))] in [
            row[:6] for row in rows
        ]
        for setting in (["model", "org/Model"], ["engine", "vllm"], ["temperature", "0.8"]):
            assert setting in rows
        assert ["n", "4"] in rows


_ENDS = (("low", "high"), ("low_here", "high_here"))


def test_a_page_needs_nothing_else_and_runs_nothing(evaluate) -> None:
    path = evaluate("a", {"1": "ccww", "2": "wwct"})
    text = report(load([path]))["report.html"].decode()
    page = Page(text)
    assert {"script", "img", "link", "iframe", "object", "foreignobject"}.isdisjoint(page.tags)
    policy = next(value for name, value in page.attributes if name == "content")
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    links = [value for name, value in page.attributes if name in ("src", "href", "srcset", "data")]
    assert links
    assert all(value.startswith("#") for value in links)
    assert "://" not in text
    assert "@import" not in text
    targets = set(re.findall(r"url\(([^)]*)\)", text))
    ids = [value for name, value in page.attributes if name == "id"]
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert len(ids) == len(set(ids))


def test_each_plot_has_words_for_those_who_can_t_see_it(evaluate) -> None:
    path = evaluate("a", {"1": "ccww", "2": "wwct"})
    page = Page(report(load([path]))["report.html"].decode())
    labels = [value for name, value in page.attributes if name == "aria-label"]
    assert page.tags.count("svg") == page.tags.count("details") == len(labels) == 7
    assert any("from 0.3750 at k = 1" in label for label in labels)


def test_text_is_text(evaluate) -> None:
    path = evaluate("a", {f"a{HOSTILE}": "ccww", "b": "wwct"}, model=f"x/{HOSTILE}")
    files = report(load([path]))
    text, markdown = (files[name].decode() for name in ("report.html", "report.md"))
    assert "script" not in Page(text).tags
    assert html.escape("</style><script>alert(1)</script>|`$x$ 模型⟦U+202E⟧") in text
    assert r"\<script\>alert(1)\</script\>\|\`\$x\$ 模型⟦U+202E⟧" in markdown
    assert "\u202e" not in text + markdown
    widths = [len(row) for row in cells(markdown) if row[0].startswith("a</style>")]
    assert widths
    assert 1 not in widths


def test_the_same_evals_make_the_same_bytes(evaluate) -> None:
    paths = [evaluate(name, {"1": "ccww", "2": "wwct"}) for name in "ab"]
    assert report(load(paths)) == report(load(paths))


def test_plots_beside_are_images(evaluate, tmp_path: Path) -> None:
    path = evaluate("a", {"5x5": "ccww", "7x7": "wwct"})
    files = report(load([path]))
    pictures = {name for name in files if name.endswith(".png")}
    stems = {Path(name).stem for name in pictures}
    assert stems >= {"pass-at-k", "pass-rates", "outcomes", "lengths", "accuracy-by-size"}
    assert "accuracy-by-level" not in stems  # the same groups
    for name in pictures:
        image = Image.open(io.BytesIO(files[name]))
        image.load()
        assert (image.format, min(image.size) > 300) == ("PNG", True)
        assert len(set(image.convert("L").tobytes())) > 10
    markdown = files["report.md"].decode()
    assert set(re.findall(r"\]\((.*?)\)", markdown)) == pictures

    out = tmp_path / "out"
    (out / PICTURES).mkdir(parents=True)
    (out / PICTURES / "old.png").write_bytes(b"")
    write(files, out)
    written = {f.relative_to(out).as_posix(): f.read_bytes() for f in out.rglob("*.*")}
    assert written == files


def test_runs_are_overlaid_with_what_differs_first(evaluate) -> None:
    paths = [
        evaluate("a", {"1": "ccww", "2": "wwct"}, command=("/bin/llmpipe", "eval", "x y")),
        evaluate("b", {"1": "cccc", "2": "cwct"}, model="org/Other"),
    ]
    found = compare.run(compare.Config(), [[path] for path in paths])
    files = report(load(paths), found)
    rows = cells(files["report.md"].decode())
    assert ["what differs", "a", "b"] in rows
    assert ["model", "org/Model", "org/Other"] in rows
    assert ["temperature", "0.8"] in rows
    difference = found.rows["pass@1"][1].difference
    assert difference is not None
    (row,) = (row for row in rows if row[:2] == ["pass@1", str(paths[1])])
    assert row[2] == f"{difference.value:+.4f}" == "+0.3750"
    assert row[5] == "2 : 0"
    assert "llmpipe eval 'x y'" in files["report.md"].decode()


def test_other_problems_other_n_and_errors_are_told(evaluate) -> None:
    paths = [evaluate("a", {"1": "ccww", "2": "wcee"}), evaluate("b", {"1": "cccccc"})]
    text = report(load(paths))["report.md"].decode()
    assert "a: 2 samples with errors are left out" in text
    assert "different problems, 1 of them in all runs" in text
    assert "n differs" in text


def test_what_can_t_be_said_is_said_to_be_missing(evaluate) -> None:
    path = evaluate("a", {"1": "ccwwccww", "2": "wceeeeee"}, k=(1, 4))
    rows = cells(report(load([path]))["report.md"].decode())
    assert ["pass@4", "–", "–", "–", "1 problem has too few samples"] in rows


def test_without_matplotlib_there_are_tables(evaluate, monkeypatch: pytest.MonkeyPatch) -> None:
    path = evaluate("a", {"1": "ccww", "2": "wwct"})
    whole = report(load([path]))
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    files = report(load([path]))
    assert files.keys() == {"report.html", "report.md"}
    assert "matplotlib is not installed" in files["report.md"].decode()
    assert html.escape("pip install 'llmpipe[report]'") in files["report.html"].decode()
    page = Page(files["report.html"].decode())
    assert "svg" not in page.tags
    assert page.rows == Page(whole["report.html"].decode()).rows


def test_greedy_answers_have_no_curve(evaluate) -> None:
    path = evaluate("a", {"1": "c", "2": "w", "3": "c"}, k=(1,), temperature=0)
    files = report(load([path]))
    assert f"{PICTURES}/pass-at-k.png" not in files
    text = files["report.md"].decode()
    (row,) = (row for row in cells(text) if row[:2] == ["pass@1", "0.6667"])
    assert row[3] == "–"
    assert "sampled anew" not in text.split("Accuracy by level")[1]


def test_of_many_k_the_table_has_powers_of_two_and_the_last(evaluate) -> None:
    path = evaluate("a", {"1": "c" * 40 + "w" * 40, "2": "w" * 80})
    rows = cells(report(load([path]))["report.md"].decode())
    start = rows.index(next(row for row in rows if row[:3] == ["run", "k", "pass@k"])) + 2
    assert [row[1] for row in rows[start : start + 8]] == [
        "1",
        "2",
        "4",
        "8",
        "16",
        "32",
        "64",
        "80",
    ]


def test_what_is_no_eval_is_refused(evaluate, tmp_path: Path) -> None:
    path = evaluate("a", {"1": "ccww"})
    for paths, said in (
        ([path, tmp_path / "." / "a"], "given twice"),
        ([tmp_path / "a-verdicts"], "holds Verdict rows"),
        ([tmp_path / "nowhere"], "does not exist"),
    ):
        with pytest.raises(UserError, match=said):
            load(paths)
    results = json.loads((path / "results.json").read_text())
    del results["curves"]
    (path / "results.json").write_text(json.dumps(results))
    with pytest.raises(UserError, match="has no curves"):
        load([path])


def test_steps_that_are_gone_are_named(evaluate, tmp_path: Path) -> None:
    path = evaluate("a", {"1": "ccww", "2": "wwct"}, command=("llmpipe", "eval"))
    (tmp_path / "a-problems").rename(tmp_path / "moved")
    text = report(load([path]))["report.md"].decode()
    assert "Gone, or made again since: a-problems" in text


def test_commands_are_told_with_the_folder_they_are_to_be_run_in(
    evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "my work"
    work.mkdir()
    monkeypatch.chdir(work)
    path = evaluate("a", {"1": "ccww", "2": "wwct"}, command=("llmpipe", "eval", "-o", "../a"))
    monkeypatch.chdir(tmp_path)
    lines = f"cd '{work}'\nllmpipe eval -o ../a\n"
    assert lines in report(load([path]))["report.md"].decode()
    moved = tmp_path.rename(tmp_path.with_name(f"{tmp_path.name}-moved"))
    text = report(load([moved / "a"]))["report.md"].decode()
    assert lines.replace(str(work), str(moved / "my work")) in text
    (moved / "my work").rmdir()
    assert "cd " not in report(load([moved / "a"]))["report.md"].decode()
