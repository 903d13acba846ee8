"""vLLM takes what was trained as it takes what it was trained from."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from helpers import make_artifact, needs_vllm, problem
from tiny_model import make_tiny_model, pack_sums

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Rollout
from llmpipe.core.run import Mode
from llmpipe.stages import rollout, train

pytest.importorskip("trl", reason="trl is not installed")
pytest.importorskip("peft", reason="peft is not installed")


@pytest.mark.slow
@needs_vllm
def test_vllm_samples_from_a_trained_model(tmp_path: Path) -> None:
    wide = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}
    model = make_tiny_model(tmp_path / "tiny", **wide)
    rows = pack_sums(tmp_path, model, 60)
    config = train.plan(
        epochs=12,
        gradient_accumulation=2,
        learning_rate=1e-2,
        dtype="float32",
        gradient_checkpointing=False,
    )
    trained = train.run(config, rows, model, tmp_path / "trained", Mode()).out

    problems = make_artifact(tmp_path / "problems", [problem(f"{i} + {i}?") for i in range(4)])
    bare = tmp_path / "template"
    bare.write_text("{prompt}")  # as it was trained, without an instruction
    sampled = rollout.plan(
        engine="vllm",
        model=str(trained),
        prompt_template=bare,
        n=2,
        temperature=0,
        max_tokens=8,
        engine_args={},
    )
    made = Artifact.open(rollout.run(sampled, problems, tmp_path / "rollouts", Mode()).out)
    engine = made.manifest.details["engine"]
    template = (model / "chat_template.jinja").read_bytes()
    assert engine["chat_template_sha256"] == hashlib.sha256(template).hexdigest()
    # It has learnt to answer with a number and a full stop, and to end there.
    answers = list(made.iter_rows(Rollout))
    assert {answer.finish_reason for answer in answers} == {"stop"}
    assert all(answer.completion.rstrip(".").isdigit() for answer in answers)
