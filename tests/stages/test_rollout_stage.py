"""Rollouts survive: kills, growth, changed problems, and changed minds."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from scripted_rollouts import make_problems, rows, sample

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, Rollout
from llmpipe.core.run import Mode
from llmpipe.core.seeds import sample_seed
from llmpipe.core.spec import plain, same_settings
from llmpipe.stages import rollout


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return make_problems(tmp_path / "problems", range(10))


def test_every_sample_once_in_order_with_its_own_seed(problems: Path, tmp_path: Path) -> None:
    result = sample(problems, tmp_path / "out", seed=7)
    ids = [p.id for p in Artifact.open(problems).iter_rows(Problem)]
    found = rows(tmp_path / "out")
    assert [(r.problem_id, r.sample) for r in found] == [(i, j) for i in ids for j in range(4)]
    assert all(r.seed == sample_seed(7, r.problem_id, r.sample) for r in found)
    assert len({r.seed for r in found}) == 40
    first = found[0]
    assert first.messages[0]["content"].startswith("What is 0 + 1?\n\n")
    assert first.messages[-1] == {"role": "assistant", "content": first.completion}
    assert result.figures["completion_tokens"] == sum(r.completion_tokens for r in found)
    manifest = Artifact.open(tmp_path / "out").manifest
    assert manifest.details["engine"]["for_tests_only"] is True
    assert not (tmp_path / "out.partial").exists()


def test_a_larger_n_or_limit_draws_only_what_is_missing(
    problems: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    sample(problems, out, n=2, limit=5)
    before = {(r.problem_id, r.sample): r for r in rows(out)}
    with caplog.at_level("INFO", "llmpipe"):
        assert sample(problems, out, n=6).rows == 60
    assert "50 of 60 samples to draw" in caplog.text
    after = {(r.problem_id, r.sample): r for r in rows(out)}
    assert all(after[key] == row for key, row in before.items())
    assert sample(problems, out, n=3).up_to_date  # it holds those, and more
    assert len(rows(out)) == 60


def test_other_sampling_is_refused_and_only_speed_may_change(
    problems: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    sample(problems, out)
    with pytest.raises(UserError, match=r"temperature was 1\.0, is now 0\.5"):
        sample(problems, out, temperature=0.5)
    with pytest.raises(UserError, match="engine_args was"):
        sample(problems, out, engine_args={"p_correct": "0.9"})
    assert sample(problems, out, engine_args={"window": "3"}).up_to_date


def test_force_keeps_what_cost_gpu_hours(problems: Path, tmp_path: Path) -> None:
    sample(problems, tmp_path / "out")
    old = rows(tmp_path / "out")
    sample(problems, tmp_path / "out", Mode(force=True), temperature=0.5)
    (aside,) = tmp_path.glob("out.old-*")
    assert rows(aside) == old


def test_changed_problems_keep_the_samples_that_still_hold(
    problems: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    sample(problems, out)
    before = {(r.problem_id, r.sample): r for r in rows(out)}
    make_problems(problems, range(5, 20))
    with caplog.at_level("INFO", "llmpipe"):
        assert sample(problems, out).rows == 60
    assert "40 of 60 samples to draw" in caplog.text
    after = {(r.problem_id, r.sample): r for r in rows(out)}
    assert all(before[key] == after[key] for key in before.keys() & after.keys())
    (aside,) = (p for p in tmp_path.glob("out.old-*") if p.is_dir())
    assert len(rows(aside)) == 40  # the five problems that are gone are kept there


def test_an_engine_that_breaks_costs_only_what_was_in_flight(
    problems: Path, tmp_path: Path
) -> None:
    sample(problems, tmp_path / "whole")
    for fail_after in ("1", "17", "20"):
        with pytest.raises(RuntimeError, match="breaks"):
            sample(problems, tmp_path / "out", engine_args={"fail_after": fail_after})
        assert not (tmp_path / "out").exists()
    sample(problems, tmp_path / "out")
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")


def _start(problems: Path, out: Path, *extra: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "llmpipe", "rollout", str(problems), "-o", str(out)]
    command += ["--engine", "scripted", "--model", "none", "-n", "4", "--max-tokens", "64", *extra]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=out.parent)


def _journal(out: Path) -> list[dict[str, Any]]:
    path = out.with_name(out.name + ".partial") / "journal.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
    return [json.loads(line) for line in whole.splitlines()[1:]]


def _wait_for(out: Path, lines: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while len(_journal(out)) < lines:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize("lines", [0, 1, 13, 39])
def test_kill_9_loses_nothing_journalled_and_doubles_nothing(
    problems: Path, tmp_path: Path, lines: int
) -> None:
    out = tmp_path / "out"
    process = _start(problems, out, "--engine-arg", "delay=0.02")
    _wait_for(out, lines, process)
    process.kill()
    process.communicate()
    kept = _journal(out)
    assert len(kept) >= lines
    sample(problems, out)
    found = {(r.problem_id, r.sample): r for r in rows(out)}
    assert len(found) == len(rows(out)) == 40
    for row in kept:
        assert found[row["problem_id"], row["sample"]] == Rollout.from_row(row)
    sample(problems, tmp_path / "whole")
    assert rows(out) == rows(tmp_path / "whole")


def test_ctrl_c_says_how_to_go_on(problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = _start(problems, out, "--engine-arg", "delay=0.5")
    _wait_for(out, 3, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    with pytest.raises(UserError, match="is unfinished"):
        Artifact.open(out)


def test_a_begun_run_is_not_mixed_with_other_settings(problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        sample(problems, out, engine_args={"fail_after": "5"})
    with pytest.raises(UserError, match=r"begun with other settings: seed was 0, is now 1"):
        sample(problems, out, seed=1)
    assert len(_journal(out)) == 5
    sample(problems, out, Mode(remake=True), seed=1)
    (aside,) = tmp_path.glob("out.old-*.jsonl")
    assert len(aside.read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("was", "changed"),
    [
        ('"completion":', '"completiox":'),
        ('"seed": ', '"seed": "a", "_": '),
        ('"messages": [', '"messages": null, "_": ['),
        ('"error": null', '"error": 5'),
    ],
)
def test_a_row_that_lacks_a_column_is_said_before_anything_is_sampled(
    problems: Path, tmp_path: Path, was: str, changed: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        sample(problems, out, engine_args={"fail_after": "5"})
    path = tmp_path / "out.partial" / "journal.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:3], lines[3].replace(was, changed, 1), *lines[4:]]))
    with pytest.raises(UserError, match=r"journal\.jsonl:4 is damaged") as e:
        sample(problems, out)
    assert "sed -i 4d" in str(e.value.hint)
    path.write_text("".join([*lines[:3], *lines[4:]]))  # what the hint does
    sample(problems, out)
    sample(problems, tmp_path / "whole")
    assert rows(out) == rows(tmp_path / "whole")


def test_a_run_begun_before_a_setting_came_to_be_goes_on(problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        sample(problems, out, engine_args={"fail_after": "5"})
    begun = _journal(out)
    journal = tmp_path / "out.partial/journal.jsonl"
    header, rest = journal.read_text().split("\n", 1)
    older = json.loads(header)
    del older["max_turns"], older["prompt_template"]
    journal.write_text(json.dumps(older) + "\n" + rest)

    sample(problems, out, Mode(remake=True))
    assert not list(tmp_path.glob("out.old-*"))
    found = {(r.problem_id, r.sample): r for r in rows(out)}
    assert len(found) == 40
    assert all(found[r["problem_id"], r["sample"]] == Rollout.from_row(r) for r in begun)


def test_a_mistyped_option_leaves_nothing_behind(problems: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no option 'p_corect'"):
        sample(problems, tmp_path / "out", engine_args={"p_corect": "0.9"})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["problems"]
    assert sample(problems, tmp_path / "out", engine_args={"p_correct": "0.9"}).rows == 40


def test_a_forced_run_goes_on_when_forced_again(problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sample(problems, out)
    with pytest.raises(RuntimeError):
        sample(problems, out, Mode(force=True), engine_args={"fail_after": "5"})
    again = _journal(out)
    sample(problems, out, Mode(force=True))
    assert {r.seed for r in rows(out)} >= {row["seed"] for row in again}
    assert len(list(tmp_path.glob("out.old-*"))) == 1


def test_errors_are_rows_and_many_of_them_want_a_look(problems: Path, tmp_path: Path) -> None:
    result = sample(problems, tmp_path / "out", engine_args={"context": "5"})
    assert result.exit_code == 3
    assert result.attention == "40 of 40 samples failed (column error says why)"
    assert {r.finish_reason for r in rows(tmp_path / "out")} == {"error"}


def test_problems_that_repeat_an_id_are_refused(tmp_path: Path) -> None:
    problems = make_problems(tmp_path / "problems", [1, 2, 2])
    with pytest.raises(UserError, match="1 rows that repeat") as refused:
        sample(problems, tmp_path / "out")
    assert str(refused.value.hint).startswith("llmpipe dedupe")


def test_worked_examples_come_first_and_only_for_their_task(problems: Path, tmp_path: Path) -> None:
    shots = tmp_path / "shots.jsonl"
    shots.write_text(
        '{"task": "math", "prompt": "What is 1 + 1?", "response": "\\\\boxed{2}"}\n\n'
        '{"task": "maze", "prompt": "S.E", "response": "\\\\boxed{RR}"}\n'
    )
    sample(problems, tmp_path / "out", few_shot=shots, system="Be brief.")
    messages = rows(tmp_path / "out")[0].messages
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert messages[1]["content"].startswith("What is 1 + 1?\n\n")
    assert messages[2]["content"] == "\\boxed{2}"
    assert Artifact.open(tmp_path / "out").manifest.details["few_shot_messages"] == {"math": 2}
    shots.write_text('{"prompt": "p"}\n')
    with pytest.raises(UserError, match=r"shots\.jsonl:1 is no worked example"):
        sample(problems, tmp_path / "other", few_shot=shots)
    shots.write_text("\n")
    with pytest.raises(UserError, match=r"shots\.jsonl holds no worked example"):
        sample(problems, tmp_path / "other", few_shot=shots)
    shots.write_text('{"task": "maze", "prompt": "S.E", "response": "RR"}\n')
    with pytest.raises(UserError, match="no worked example is for math"):
        sample(problems, tmp_path / "other", few_shot=shots)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"temperature": -1.0}, "temperature is -1"),
        ({"top_p": 0.0}, "top-p is 0"),
        ({"engine": "vlm"}, "no engine is called 'vlm'"),
        ({"engine": "transformers", "model": "no/where"}, "there is no model at no/where"),
    ],
)
def test_bad_options_are_one_line(
    problems: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        sample(problems, tmp_path / "out", **options)
    assert "\n" not in refused.value.message


def test_an_engine_elsewhere_samples_what_the_same_engine_samples_here() -> None:
    ours = {"seed": 0, "n": 2}
    here = rollout.plan(engine="scripted", model="m", engine_args={"window": "4"}, **ours)
    there = rollout.plan(
        engine="ray",
        model="m",
        engine_args={"engine": "scripted", "window": "4", "actors": "2", "p_correct": "0.5"},
        **ours,
    )

    assert (there.engine, there.executor) == ("scripted", "ray")
    assert there.engine_args == {"p_correct": "0.5"}
    assert there.engine_tuning == {"window": "4", "actors": "2"}
    assert same_settings(dataclasses.replace(here, engine_args=there.engine_args), plain(there))


def test_an_answer_that_leaves_no_room_for_a_prompt_is_refused_before_loading(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 1024}')

    for engine in ("vllm", "transformers"):
        with pytest.raises(UserError, match="leaves no room for a prompt in a context of 1024"):
            rollout.plan(engine=engine, model=str(tmp_path), max_tokens=1024)


def test_another_model_of_a_server_is_another_setting(problems: Path, tmp_path: Path) -> None:
    sample(problems, tmp_path / "out", model="small")

    with pytest.raises(UserError, match='model_digest was "small", is now "large"'):
        sample(problems, tmp_path / "out", model="large")


def test_how_it_is_sampled_and_put_is_a_setting(problems: Path, tmp_path: Path) -> None:
    out, template = tmp_path / "out", tmp_path / "chat.jinja"
    template.write_text("{{ messages[-1].content }}")
    sample(problems, out, chat_template=str(template), chat_template_kwargs={"think": True})

    config = Artifact.open(out, Rollout).manifest.config
    assert config["chat_template"] == "{{ messages[-1].content }}"
    with pytest.raises(UserError, match="sample_seeds was true, is now false"):
        sample(
            problems,
            out,
            chat_template=str(template),
            chat_template_kwargs={"think": True},
            sample_seeds=False,
        )
    with pytest.raises(UserError, match=r"the chat template .*absent.* can't be read"):
        sample(problems, out, chat_template=str(tmp_path / "absent"))
    with pytest.raises(UserError, match="has no logprobs"):
        sample(problems, out, logprobs=True)


def test_samples_drawn_before_a_setting_came_to_be_are_kept(problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sample(problems, out)
    before = rows(out)
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["config"]["sample_seeds"]
    manifest["fingerprint"] = "of another version"
    (out / "manifest.json").write_text(json.dumps(manifest))

    result = sample(problems, out, engine_args={"fail_after": "1"})  # draws none

    assert result.rows == 40
    assert rows(out) == before
