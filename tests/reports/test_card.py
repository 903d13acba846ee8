from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from helpers import make_artifact, rollout
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.reports.card import publish
from llmpipe.reports.runs import load
from llmpipe.stages import prepare, score

_FILE = {"size": 1, "sha256": "", "blob": "", "mtime_ns": 0, "endpoint": None}

OTHERS = """\
---
license: mit  # as its base
model-index:
- name: Mine
  results:
  - task: {type: text-generation}
    dataset: {type: other/set, name: Other}
    metrics:
    - type: bleu
      value: 0.5

tags: [maths]
---

# Mine

Some --- text.
"""


def front(text: str) -> Any:
    return yaml.safe_load(text.split("---\n")[1])


def test_a_card_goes_to_the_hub_s_library_and_back(evaluate, tmp_path: Path) -> None:
    path = evaluate("a", {"1": "ccww", "2": "wwct"}, k=(1, 2, 4))
    found = json.loads((path / "results.json").read_text())
    card = tmp_path / "README.md"
    publish(load([path]), card)
    name, results = model_index_to_eval_results(front(card.read_text())["model-index"])
    assert name == "Model"
    by_name = {result.metric_type: result for result in results}
    assert list(by_name) == ["pass@1", "pass@2", "pass@4"]
    for metric, result in by_name.items():
        told = found["metrics"][metric]
        assert result.metric_value == told["value"]
        assert result.metric_args["n"] == 4
        assert result.metric_args["new_problems"] == [told["low"], told["high"]]
        assert result.metric_args["temperature"] == 0.8
        assert (result.task_type, result.task_name) == ("text-generation", "math")
        assert result.dataset_name == "made/set"
    assert ModelCard.load(card).data.eval_results == results


def test_the_rest_of_a_card_stays_as_it_is(evaluate, tmp_path: Path) -> None:
    path = evaluate("a", {"1": "ccww", "2": "wwct"})
    card = tmp_path / "README.md"
    card.write_text(OTHERS)
    publish(load([path]), card)
    text = card.read_text()
    begin, end = OTHERS.index("model-index:"), OTHERS.index("tags:")
    assert text.startswith(OTHERS[:begin])
    assert text.endswith(OTHERS[end:])
    (index,) = front(text)["model-index"]
    assert index["name"] == "Mine"
    old, new = index["results"]
    assert old == front(OTHERS)["model-index"][0]["results"][0]
    assert [metric["type"] for metric in new["metrics"]] == ["pass@1", "pass@2"]

    publish(load([path]), card)  # the same again changes nothing
    assert card.read_text() == text
    better = evaluate("b", {"1": "cccc", "2": "cccc"})
    (tmp_path / "b-problems").rename(tmp_path / "gone")
    publish(load([better]), card)
    (index,) = front(card.read_text())["model-index"]
    assert [metric["value"] for metric in index["results"][1]["metrics"]] == [1.0, 1.0]


def test_line_ends_stay_and_a_card_without_a_head_gets_one(evaluate, tmp_path: Path) -> None:
    path = evaluate("a", {"1": "ccww", "2": "wwct"})
    card = tmp_path / "README.md"
    card.write_bytes(OTHERS.replace("\n", "\r\n").encode())
    publish(load([path]), card)
    assert card.read_bytes().count(b"\n") == card.read_bytes().count(b"\r\n")
    assert card.read_bytes().endswith(b"Some --- text.\r\n")
    assert len(ModelCard.load(card).data.eval_results) == 3
    card.write_text("# Mine\n")
    publish(load([path]), card)
    assert card.read_text().endswith("---\n# Mine\n")


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("- a list", "no YAML mapping"),
        ("a: [", "no YAML mapping"),
        ("model-index: []", "not that of one model"),
        ("model-index: [{name: a, results: []}, {name: b, results: []}]", "not that of one model"),
        ('"model-index": [{name: a, results: []}]', "not one line a field"),
        ("{license: mit}", "can't put figures"),
    ],
)
def test_a_head_that_is_not_understood_is_left_alone(
    evaluate, tmp_path: Path, head: str, said: str
) -> None:
    path = evaluate("a", {"1": "ccww", "2": "wwct"})
    card = tmp_path / "README.md"
    card.write_text(f"---\n{head}\n---\n# Mine\n")
    with pytest.raises(UserError, match=said):
        publish(load([path]), card)
    assert card.read_text() == f"---\n{head}\n---\n# Mine\n"


def test_a_card_is_of_one_model(evaluate, tmp_path: Path) -> None:
    paths = [evaluate(name, {"1": "cw"}, model=f"org/{name}") for name in "ab"]
    with pytest.raises(UserError, match="of org/a, org/b"):
        publish(load(paths), tmp_path / "README.md")
    assert not (tmp_path / "README.md").exists()


def test_greedy_answers_have_one_interval(evaluate, tmp_path: Path) -> None:
    path = evaluate("a", {"1": "c", "2": "w", "3": "c"}, k=(1,), temperature=0)
    publish(load([path]), tmp_path / "README.md")
    (result,) = ModelCard.load(tmp_path / "README.md").data.eval_results
    assert result.metric_args["temperature"] == 0
    assert "same_problems" not in result.metric_args
    assert len(result.metric_args["new_problems"]) == 2


def test_a_data_set_of_the_hub_has_its_name_split_and_revision(tmp_path: Path) -> None:
    folder = tmp_path / "datasets/openai/gsm8k"
    (folder / "main").mkdir(parents=True)
    rows = [{"question": f"{i} + 1?", "answer": f"So.\n#### {i + 1}"} for i in range(2)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "main/test-00000-of-00001.parquet")
    manifest = {
        "format": 2,
        "repo": "openai/gsm8k",
        "repo_type": "dataset",
        "commit": "c0ffee",
        "endpoint": "",
        "asked": {"revision": "main"},
        "files": {"main/test-00000-of-00001.parquet": _FILE},
        "left_out": {},
        "about": {},
    }
    (folder / ".llmpipe").mkdir()
    (folder / ".llmpipe/manifest.json").write_text(json.dumps(manifest))
    config = prepare.Config(source="gsm8k", split="test")
    prepare.run(config, tmp_path / "problems", Mode(), root=tmp_path)
    asked = list(Artifact.open(tmp_path / "problems").iter_rows(Problem))
    rollouts = make_artifact(
        tmp_path / "rollouts",
        [rollout(asked[0].id, 0, "x")],
        record=Rollout,
        stage="rollout",
        inputs={"problems": tmp_path / "problems"},
    )
    verdict = Verdict(problem_id=asked[0].id, sample=0, status="correct", extracted="1", detail="")
    verdicts = make_artifact(
        tmp_path / "verdicts", [verdict], stage="verify", inputs={"rollouts": rollouts}
    )
    score.run(score.Config(k=(1,)), verdicts, tmp_path / "eval", Mode())
    publish(load([tmp_path / "eval"]), tmp_path / "README.md")
    (result,) = ModelCard.load(tmp_path / "README.md").data.eval_results
    assert result.dataset_type == "openai/gsm8k"
    assert (result.dataset_split, result.dataset_revision) == ("test", "c0ffee")
