"""Making artifacts: up to date, refused, forced, rebuilt, and whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import multiprocessing
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest

from llmpipe.core.artifact import Artifact, Manifest
from llmpipe.core.errors import UserError
from llmpipe.core.provenance import log_to, redact, stamp
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode, Result, Spec, Writer, check_out, execute


@dataclass(frozen=True, kw_only=True)
class Config:
    rows: int = 3
    token_budget: int = 1
    workers: int = field(default=1, metadata={"fingerprint": False})


def problem(i: int) -> Problem:
    return Problem.make(task="math", source="test", prompt=f"What is {i} + {i}?", answer=str(2 * i))


def make(
    out: Path, config: Config | None = None, mode: Mode | None = None, **inputs: Path
) -> Result:
    config = config or Config()
    spec = Spec(stage="numbers", record=Problem, config=config, inputs=inputs, out=out)

    def build(writer: Writer) -> None:
        for i in range(config.rows):
            writer.read += 1
            if i % 5 == 4:
                writer.reject(f"row {i}", "fifth", "every fifth row")
            else:
                writer.add(problem(i))
        writer.figures["sum"] = sum(range(config.rows))

    return execute(spec, build, mode or Mode())


def test_an_artifact_holds_rows_rejects_log_and_manifest(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = make(out, Config(rows=10))
    assert (result.rows, dict(result.dropped), result.exit_code) == (8, {"fifth": 2}, 0)
    assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*")) == [
        "data",
        "data/train-00000-of-00001.parquet",
        "manifest.json",
        "rejects.parquet",
        "run.log",
    ]
    artifact = Artifact.open(out, Problem)
    assert [p.answer for p in artifact.iter_rows(Problem)] == [
        "0",
        "2",
        "4",
        "6",
        "10",
        "12",
        "14",
        "16",
    ]
    rejects = pq.read_table(out / "rejects.parquet").to_pylist()
    assert rejects[0] == {"id": "row 4", "reason": "fifth", "detail": "every fifth row"}
    m = artifact.manifest
    assert m.counts == {"read": 10, "kept": 8, "dropped": {"fifth": 2}}
    assert m.figures["sum"] == 45
    assert m.config == {"rows": 10, "token_budget": 1, "workers": 1}
    assert "8 kept" in (out / "run.log").read_text()
    assert not (tmp_path / "out.partial").exists()


def test_datasets_opens_it_and_finds_no_library_metadata(tmp_path: Path) -> None:
    make(tmp_path / "out", Config(rows=10))
    rows = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["train"]
    assert rows.num_rows == 8
    assert rows.column_names == Problem.SCHEMA.names
    assert pq.read_schema(next((tmp_path / "out/data").iterdir())).metadata is None


def test_the_same_again_is_up_to_date(tmp_path: Path) -> None:
    make(tmp_path / "out")
    before = (tmp_path / "out/manifest.json").stat()
    again = make(tmp_path / "out", Config(workers=9))  # not part of the fingerprint
    assert again.up_to_date
    assert again.rows == 3
    assert (tmp_path / "out/manifest.json").stat().st_mtime_ns == before.st_mtime_ns


def test_other_settings_are_refused_by_name_unless_forced(tmp_path: Path) -> None:
    make(tmp_path / "out")
    with pytest.raises(UserError, match=r"rows was 3, is now 4") as refused:
        make(tmp_path / "out", Config(rows=4))
    assert "--force" in str(refused.value.hint)
    assert "token_budget" not in refused.value.message
    assert make(tmp_path / "out", Config(rows=4), Mode(remake=True)).rows == 4
    assert make(tmp_path / "out", Config(rows=2), Mode(force=True)).rows == 2
    assert make(tmp_path / "out", Config(rows=2), Mode(remake=True)).up_to_date


def test_other_input_is_made_again_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("a")
    make(tmp_path / "out", text=source)
    assert make(tmp_path / "out", text=source).up_to_date
    source.write_text("b")
    with caplog.at_level("INFO", "llmpipe"):
        assert not make(tmp_path / "out", text=source).up_to_date
    assert "its input has changed (text)" in caplog.text


def test_a_missing_or_cut_file_is_noticed(tmp_path: Path) -> None:
    make(tmp_path / "out")
    data = tmp_path / "out/data/train-00000-of-00001.parquet"
    data.write_bytes(data.read_bytes()[:-10])
    assert not make(tmp_path / "out").up_to_date
    assert make(tmp_path / "out").up_to_date


def test_a_broken_build_leaves_the_old_artifact_and_no_half_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out)
    spec = Spec(stage="numbers", record=Problem, config=Config(rows=1), inputs={}, out=out)

    def build(writer: Writer) -> None:
        writer.add(problem(1))
        raise UserError("bad row")

    with pytest.raises(UserError, match="bad row"):
        execute(spec, build, Mode(force=True))
    assert Artifact.open(out).rows == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


@pytest.mark.parametrize("old_is_moved", [False, True])
def test_a_swap_that_was_cut_short_is_ended(tmp_path: Path, old_is_moved: bool) -> None:
    """Killed between the manifest and the renames: the new artifact is whole, and wins."""
    out, partial = tmp_path / "out", tmp_path / "out.partial"
    make(out, Config(rows=2))
    partial.mkdir()
    make(tmp_path / "other", Config(rows=4))
    (tmp_path / "other").rename(partial / "new")
    if old_is_moved:
        out.rename(partial / "old")
    assert make(out, Config(rows=4)).up_to_date
    assert Artifact.open(out).rows == 4
    assert not partial.exists()


def test_what_is_kept_aside_is_kept_by_a_cut_swap_too(tmp_path: Path) -> None:
    out, partial = tmp_path / "out", tmp_path / "out.partial"
    make(out, Config(rows=2))
    partial.mkdir()
    (partial / "keep-old").touch()
    make(partial / "new", Config(rows=4))
    assert make(out, Config(rows=4)).up_to_date
    (aside,) = tmp_path.glob("out.old-*")
    assert (Artifact.open(out).rows, Artifact.open(aside).rows) == (4, 2)


def test_what_a_kill_left_of_a_finished_swap_is_in_nobodys_way(tmp_path: Path) -> None:
    out, partial = tmp_path / "out", tmp_path / "out.partial"
    make(out, Config(rows=2))
    (partial / "old/data").mkdir(parents=True)  # half removed
    (partial / "keep-old").touch()
    assert make(out, Config(rows=4), Mode(force=True)).rows == 4
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_a_manifest_reaches_the_disk_after_what_it_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        name = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append(name.relative_to(tmp_path.resolve()).as_posix())
        if synced[-1] == ".":  # the new artifact's name: till then, nothing else goes
            assert (tmp_path / "out.partial/old").exists()

    make(tmp_path / "out", Config(rows=6))
    monkeypatch.setattr(os, "fsync", fsync)
    make(tmp_path / "out", Config(rows=7), Mode(force=True))

    new = "out.partial/new"
    before = synced[: synced.index(f"{new}/manifest.json.tmp")]
    data = f"{new}/data/train-00000-of-00001.parquet"
    assert {data, f"{new}/data", f"{new}/rejects.parquet"} <= set(before)
    assert synced[len(before) + 1 :] == [new, "."]


def test_artifacts_of_other_stages_inside_move_along(tmp_path: Path) -> None:
    """An eval keeps its rollouts inside its folder: scoring again must not cost them."""
    make(tmp_path / "out/inner", Config(rows=1))
    make(tmp_path / "out", Config(rows=2))
    make(tmp_path / "out", Config(rows=3), Mode(force=True))
    assert Artifact.open(tmp_path / "out").rows == 3
    assert Artifact.open(tmp_path / "out/inner").rows == 1


def test_what_a_user_put_inside_moves_along_too(tmp_path: Path) -> None:
    make(tmp_path / "out", Config(rows=2))
    (tmp_path / "out/notes.txt").write_text("keep")
    make(tmp_path / "out/deep/down", Config(rows=1))
    make(tmp_path / "out", Config(rows=3), Mode(force=True))
    assert (tmp_path / "out/notes.txt").read_text() == "keep"
    assert Artifact.open(tmp_path / "out/deep/down").rows == 1
    assert len(list((tmp_path / "out/data").iterdir())) == 1


def test_what_is_not_ours_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter1.tex").write_text("...")
    with pytest.raises(UserError, match="was not made by llmpipe"):
        make(tmp_path / "thesis", mode=Mode(force=True))
    make(tmp_path / "out")
    spec = Spec(stage="letters", record=Problem, config=Config(), inputs={}, out=tmp_path / "out")
    with pytest.raises(UserError, match="was made by numbers, not by letters"):
        execute(spec, lambda writer: None, Mode(force=True))


def test_an_output_is_looked_at_before_what_it_needs_is_made(tmp_path: Path) -> None:
    out = tmp_path / "eval"
    (out / "rollouts.partial").mkdir(parents=True)
    (out / f"rollouts.old-{stamp()}.jsonl").write_text("{}\n")
    check_out(out, "score", force=False)  # sampling was killed, then begun with other settings
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="was not made by llmpipe"):
        check_out(out, "score", force=True)
    make(tmp_path / "problems")
    with pytest.raises(UserError, match="was made by numbers, not by score"):
        check_out(tmp_path / "problems", "score", force=True)
    with pytest.raises(UserError, match="no folder that can be made"):
        check_out(Path(), "score", force=False)


def test_nothing_kept_is_code_3_and_says_what_took_the_last_rows(tmp_path: Path) -> None:
    spec = Spec(stage="sieve", record=Problem, config=Config(), inputs={}, out=tmp_path / "out")

    def build(writer: Writer) -> None:
        for i in range(3):
            writer.read += 1
            writer.reject(str(i), "too_hard" if i else "too_easy")

    for _ in range(2):  # a rerun says it again
        result = execute(spec, build, Mode())
        assert result.exit_code == 3
        assert result.attention == "sieve dropped all 3 rows, most (2) for too_hard"


def test_a_dry_run_makes_nothing(tmp_path: Path) -> None:
    result = make(tmp_path / "out", mode=Mode(dry_run=True))
    assert result.plan is not None
    assert "would make" in result.plan
    assert not list(tmp_path.iterdir())


def _hold(out: Path, started: multiprocessing.synchronize.Event) -> None:
    def build(writer: Writer) -> None:
        started.set()
        multiprocessing.Event().wait()

    execute(
        Spec(stage="numbers", record=Problem, config=Config(), inputs={}, out=out), build, Mode()
    )


def test_two_runs_never_write_one_output(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "out", started))
    other.start()
    assert started.wait(60)
    try:
        with pytest.raises(UserError, match="another llmpipe run is writing"):
            make(tmp_path / "out")
    finally:
        other.kill()
        other.join()
    assert make(tmp_path / "out").rows == 3  # the kernel let go of the dead one's lock


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("a file", "is a file, not"),
        ("a folder", "without a manifest"),
        ("nothing", "does not exist"),
    ],
)
def test_opening_what_is_no_artifact(tmp_path: Path, bad: str, message: str) -> None:
    path = tmp_path / "x"
    if bad == "a file":
        path.write_text("x")
    elif bad == "a folder":
        path.mkdir()
    with pytest.raises(UserError, match=message):
        Artifact.open(path)


def test_a_damaged_manifest_is_said_and_can_be_forced_over(tmp_path: Path) -> None:
    make(tmp_path / "out")
    (tmp_path / "out/manifest.json").write_text('{"format": 1, "st')
    with pytest.raises(UserError, match="damaged"):
        make(tmp_path / "out")
    assert make(tmp_path / "out", mode=Mode(force=True)).rows == 3


def test_an_output_below_a_file_is_the_users_to_put_right(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="can't write"):
        make(tmp_path / "file/out")


def test_lineage_finds_upstream_and_notices_changes(tmp_path: Path) -> None:
    make(tmp_path / "a/problems")
    source = Artifact.open(tmp_path / "a/problems")
    spec = Spec(
        stage="copy",
        record=Problem,
        config=Config(),
        inputs={"problems": source},
        out=tmp_path / "b",
    )
    execute(spec, lambda w: w.add(problem(7)), Mode())
    found = Artifact.open(tmp_path / "b").upstream(Problem)
    assert found.path == (tmp_path / "a/problems").resolve()
    shutil.move(tmp_path / "a", tmp_path / "c")
    with pytest.raises(UserError, match="which is gone") as gone:
        Artifact.open(tmp_path / "b").upstream(Problem)
    assert gone.value.hint == "say where it is now: --problems DIR"
    moved = Artifact.open(tmp_path / "b").upstream(Problem, tmp_path / "c/problems")
    assert moved.rows == 3
    shutil.move(tmp_path / "c", tmp_path / "a")
    make(tmp_path / "a/problems", Config(rows=1), Mode(force=True))
    with pytest.raises(UserError, match="has changed since"):
        Artifact.open(tmp_path / "b").upstream(Problem)


def test_no_secret_reaches_the_manifest(tmp_path: Path) -> None:
    command = (
        "llmpipe download a/b --token hf_abcdefghijkl --token=hf_secretsecret "
        "--engine-arg api_key=sk-verysecretkey --endpoint https://me:pw@mirror.example -o x"
    )
    make(tmp_path / "out", mode=Mode(command=command.split()))
    text = (tmp_path / "out/manifest.json").read_text()
    for secret in ("abcdefghijkl", "secretsecret", "verysecretkey", "me:pw"):
        assert secret not in text
    assert json.loads(text)["command"][-2:] == ["-o", "x"]
    assert redact(["--max-tokens", "5"]) == ["--max-tokens", "5"]


def test_manifest_round_trip(tmp_path: Path) -> None:
    make(tmp_path / "out")
    m = Manifest.read(tmp_path / "out")
    assert dataclasses.replace(m) == m
    assert m.versions["llmpipe"]
    assert len(m.fingerprint) == 64
    assert stamp().endswith("Z")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_log_on_a_full_disk_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(OSError), log_to(Path("/dev/full")):
        logging.getLogger("llmpipe").debug("a line")
    assert "Traceback" not in capfd.readouterr().err
