from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.viewer.single import write


def test_a_page_stands_alone(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "new" / "page.html"
    assert write(Artifact.open(tree / "verdicts"), file, 500) == 6
    page = file.read_text(encoding="utf-8")
    assert page.count('<details class="row">') == 6
    assert not re.search(r'(?:href|src)="', page)
    assert "default-src &#x27;none&#x27;; script-src &#x27;sha256-" in page
    assert page.count("</script>") == 2
    assert "left out" not in page
    (found,) = re.findall(r'id="values">(.*?)</script>', page)
    first = json.loads(found)[0]
    assert (first["status"], first["level"], first["rate"]) == ("correct", "Level 2", 0.5)


def test_a_page_says_what_is_left_out(tree: Path, tmp_path: Path) -> None:
    assert write(Artifact.open(tree / "sft"), tmp_path / "page.html", 20) == 20
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('<details class="row">') == 20
    assert "40 rows are left out" in page


def test_what_can_not_be_written_is_said(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="can't write"):
        write(Artifact.open(tree / "pairs"), tmp_path / "file" / "page.html", 1)
