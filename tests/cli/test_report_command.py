"""The report that an eval leaves, and the commands that write others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from helpers import make_artifact
from huggingface_hub import ModelCard

from llmpipe.core.records import Problem

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def test_evals_leave_reports_and_are_put_in_one(llmpipe: Llmpipe, tmp_path: Path) -> None:
    sums = [
        Problem.make(task="math", source="t", prompt=f"{i} + 1?", answer=str(i + 1))
        for i in range(6)
    ]
    make_artifact(tmp_path / "problems", sums)

    def evaluate(name: str, *more: str) -> Path:
        scripted = ("--engine", "scripted", "--model", "none", "--k", "1,2", "-n", 4)
        llmpipe("eval", "problems", "-o", name, *scripted, *more)
        return tmp_path / name

    a, _ = evaluate("a"), evaluate("b", "--temperature", "0.5")
    page, markdown = a / "report.html", a / "report.md"
    assert f"cd {tmp_path}\nllmpipe eval problems -o a " in markdown.read_text()
    assert (a / "report_files/pass-at-k.png").is_file()
    before = page.stat().st_mtime_ns
    evaluate("a")
    assert page.stat().st_mtime_ns == before  # up to date
    markdown.unlink()
    evaluate("a", "--extract", "boxed")
    assert "| extract | boxed |" in markdown.read_text()

    said = llmpipe("report", "a", "b", "-o", "both", "--publish-card", "CARD.md", "--json")
    told = json.loads(said.stdout)
    assert told["out"] == "both"
    assert all((tmp_path / name).is_file() for name in told["files"])
    assert "CARD.md" in told["files"]
    assert len(ModelCard.load(tmp_path / "CARD.md").data.eval_results) == 4
    assert "| temperature | 1.0 | 0.5 |" in (tmp_path / "both/report.md").read_text()

    llmpipe("compare", "a", "b", "-o", "compared")
    assert "## Differences to a" in (tmp_path / "compared/report.md").read_text()

    refused = llmpipe("report", "a", "b", code=2)
    assert "needs a folder" in refused.stderr
    refused = llmpipe("report", "b", "-o", "problems/manifest.json", code=2)
    assert "can't write a report" in refused.stderr
