"""Well-mastered tokens get no loss: what that changes of the labels, to the token."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, needs_vllm, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Request, Sampling
from llmpipe.core.records import Conversation, Message, PackedRow, Problem, Rollout
from llmpipe.core.run import Mode, Result
from llmpipe.stages.build_sft import Config, run
from llmpipe.stages.pack import Config as Packing
from llmpipe.stages.pack import run as run_pack

PROBLEM = Problem.make(task="math", source="made", prompt="What is 3+3?", answer="6")
SURE, UNSURE = math.log(0.995), math.log(0.5)


@pytest.fixture(scope="module")
def tokenizer(smol_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smol_model)


def sampled(
    tokenizer: Any, sample: int, sure: set[int], *turns: str, end: bool = True, **columns: Any
) -> Rollout:
    """A rollout as the engine makes it; ``sure`` are the places of the tokens given 0.995."""
    messages: list[Message] = [
        {"role": "assistant" if i % 2 else "user", "content": turn} for i, turn in enumerate(turns)
    ]
    prompt = tokenizer.apply_chat_template(
        messages[:-1], add_generation_prompt=True, tokenize=True, return_dict=False
    )
    ids = tokenizer(turns[-1])["input_ids"] + [tokenizer.eos_token_id] * end
    values: dict[str, Any] = {
        "prompt_tokens": len(prompt),
        "token_ids": ids,
        "logprobs": [SURE if i in sure else UNSURE for i in range(len(ids))],
        **columns,
    }
    return Rollout(
        problem_id=PROBLEM.id,
        sample=sample,
        seed=0,
        messages=messages,
        completion=turns[-1],
        finish_reason="stop",
        completion_tokens=len(ids),
        **values,
    )


def build(
    folder: Path, model: Path, *rollouts: Rollout, target: float = 9.0, shots: int = 0, **more: Any
) -> Result:
    problems = make_artifact(folder / "problems", [PROBLEM])
    source = make_artifact(
        folder / "rollouts",
        rollouts,
        inputs={"problems": problems},
        details={"few_shot_messages": {"math": shots}},
    )
    config = Config(mask_mastered=0.99, target_entropy=target, **more)
    return run(config, source, folder / "out", Mode(force=True), tokenizer=model)


def made(folder: Path) -> list[Conversation]:
    return list(Artifact.open(folder / "out").iter_rows(Conversation))


def labels(folder: Path, model: Path) -> dict[tuple[int, ...], list[int]]:
    """The labels of each conversation that ``folder`` holds, packed, by its tokens."""
    run_pack(Packing(max_length=256), [folder], model, folder.parent / "packed", Mode(force=True))
    found: dict[tuple[int, ...], list[int]] = {}
    for row in Artifact.open(folder.parent / "packed").iter_rows(PackedRow):
        start = 0
        for length in row.seq_lengths:
            ids = tuple(row.input_ids[start : start + length])
            found[ids] = list(row.labels[start : start + length])
            start += length
    return found


def test_only_the_labels_of_mastered_tokens_change(
    tmp_path: Path, smol_model: Path, tokenizer: Any
) -> None:
    text = "Three and three are six, so it is 6."
    count = len(tokenizer(text)["input_ids"]) + 1
    sure = {0, 3, count - 1}  # the last one is the end of the turn
    rollout = sampled(tokenizer, 0, sure, "What is 3+3?", text)
    result = build(tmp_path, smol_model, rollout)
    run(Config(), tmp_path / "rollouts", tmp_path / "plain", Mode())
    plain, masked = labels(tmp_path / "plain", smol_model), labels(tmp_path / "out", smol_model)
    assert plain.keys() == masked.keys()
    ((ids, before),) = plain.items()
    after = masked[ids]
    first = rollout.prompt_tokens
    assert [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [
        first + i for i in sorted(sure)
    ]
    assert all(after[first + i] == -100 for i in sure)
    assert [x for x in before if x != -100] == list(rollout.token_ids or ())
    assert (result.figures["sampled_tokens"], result.figures["masked_tokens"]) == (count, 3)
    (entropy,) = {-(3 * SURE + (count - 3) * UNSURE) / count}
    assert result.figures["entropy"] == round(entropy, 4)


def test_at_the_target_nothing_is_masked(tmp_path: Path, smol_model: Path, tokenizer: Any) -> None:
    rollout = sampled(tokenizer, 0, set(), "q", "It is 6.")
    result = build(tmp_path, smol_model, rollout, target=-UNSURE)
    assert result.figures["masking"] is False
    (one,) = made(tmp_path)
    assert (one.token_ids, one.loss_mask) == (None, None)
    assert build(tmp_path, smol_model, rollout, target=-UNSURE + 0.01).figures["masking"] is True


def test_earlier_turns_keep_their_loss(tmp_path: Path, smol_model: Path, tokenizer: Any) -> None:
    everywhere = set(range(20))
    rollout = sampled(tokenizer, 0, everywhere - {1}, "q", "It is 5.", "No.", "It is 6.")
    build(tmp_path, smol_model, rollout)
    (one,) = made(tmp_path)
    learnt = [t for t, m in zip(one.token_ids or (), one.loss_mask or (), strict=True) if m]
    assert tokenizer.decode(learnt) == "It is 5.<|im_end|> is"


def test_of_turns_that_are_split_the_last_is_masked(
    tmp_path: Path, smol_model: Path, tokenizer: Any
) -> None:
    rollout = sampled(tokenizer, 0, {0}, "q", "It is 5.", "No.", "It is 6.")
    build(tmp_path, smol_model, rollout, turns="split")
    first, last = made(tmp_path)
    assert (first.token_ids, last.id) == (None, f"{PROBLEM.id}-0-t1")
    assert sum(last.loss_mask or ()) == len(rollout.token_ids or ()) - 1


def test_an_answer_that_no_token_ended_keeps_the_template_s(
    tmp_path: Path, smol_model: Path, tokenizer: Any
) -> None:
    build(tmp_path, smol_model, sampled(tokenizer, 0, {0}, "q", "It is 6.", end=False))
    (one,) = made(tmp_path)
    learnt = [t for t, m in zip(one.token_ids or (), one.loss_mask or (), strict=True) if m]
    assert tokenizer.decode(learnt) == " is 6.<|im_end|>"


def test_other_tokens_than_were_sampled_are_rejects(
    tmp_path: Path, smol_model: Path, tokenizer: Any
) -> None:
    ids = [*tokenizer("It")["input_ids"], *tokenizer(" i")["input_ids"]]
    ids += [*tokenizer("s 6.")["input_ids"], tokenizer.eos_token_id]
    build(
        tmp_path,
        smol_model,
        sampled(tokenizer, 0, set(), "q", "It is 6.", token_ids=ids, logprobs=[UNSURE] * len(ids)),
        sampled(tokenizer, 1, set(), "q", "It is 6.", prompt_tokens=3),
        sampled(tokenizer, 2, set(range(20)), "q", "It is 6."),
        sampled(tokenizer, 3, set(), "q", "It is 6.", logprobs=None),
        sampled(tokenizer, 4, set(), "q", "It is 6."),
    )
    found = [(name.rpartition("-")[2], reason) for name, reason, _ in rejects(tmp_path / "out")]
    assert sorted(found) == [
        ("0", "tokens_differ"),
        ("1", "prompt_differs"),
        ("2", "all_mastered"),
        ("3", "no_logprobs"),
    ]
    details = {reason: detail for _, reason, detail in rejects(tmp_path / "out")}
    assert details["tokens_differ"] == "from token 1 of the answer"
    assert details["prompt_differs"].endswith("before the answer, 3 when it was sampled")
    assert [c.id for c in made(tmp_path)] == [f"{PROBLEM.id}-4"]


def test_rollouts_without_log_probabilities_say_how_to_get_them(
    tmp_path: Path, smol_model: Path, tokenizer: Any
) -> None:
    rollout = sampled(tokenizer, 0, set(), "q", "It is 6.", logprobs=None)
    with pytest.raises(UserError, match="no log-probabilities") as e:
        build(tmp_path, smol_model, rollout)
    assert "--logprobs" in (e.value.hint or "")
    logits = sampled(tokenizer, 0, set(), "q", "It is 6.")
    logits = sampled(
        tokenizer, 0, set(), "q", "It is 6.", logprobs=[2.5] * len(logits.token_ids or ())
    )
    with pytest.raises(UserError, match="over 0"):
        build(tmp_path, smol_model, logits)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"system": "Brief."}, "in its own conversation"),
        ({"style": "retry"}, "in its own conversation"),
        ({"fallback": "gold"}, "in its own conversation"),
        ({"target": -1.0}, "must be in 0 to 1"),
        ({"shots": 2}, "worked examples"),
    ],
)
def test_masking_goes_by_the_prompt_that_was_sampled(
    tmp_path: Path, smol_model: Path, tokenizer: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        build(tmp_path, smol_model, sampled(tokenizer, 0, set(), "q", "It is 6."), **settings)


@pytest.mark.slow
@needs_vllm
def test_what_vllm_samples_is_what_is_trained_on(tmp_path: Path, smol_model: Path) -> None:
    """Its prompt, tokens and end of turn lie where the chat template puts them."""
    sampling = Sampling(temperature=0.7, max_tokens=48, logprobs=True)
    engine = load("engines", "vllm")(str(smol_model), sampling, {"max_num_seqs": "4"})
    asked: list[Message] = [{"role": "user", "content": PROBLEM.prompt}]
    requests = [Request(problem=PROBLEM, sample=i, seed=i, messages=asked) for i in range(8)]
    made_by = {g.request.sample: g for g in engine.stream(requests)}
    engine.close()
    rollouts = [
        Rollout(
            problem_id=PROBLEM.id,
            sample=i,
            seed=i,
            messages=[*asked, {"role": "assistant", "content": g.text}],
            completion=g.text,
            finish_reason=g.finish_reason,
            prompt_tokens=g.prompt_tokens,
            completion_tokens=g.completion_tokens,
            token_ids=g.token_ids,
            logprobs=g.logprobs,
        )
        for i, g in sorted(made_by.items())
    ]
    build(tmp_path, smol_model, *rollouts)
    # Now and then a model samples other tokens than its text is read in.
    assert {reason for _, reason, _ in rejects(tmp_path / "out")} <= {"tokens_differ"}
    kept = made(tmp_path)
    assert len(kept) >= 6
    for one in kept:
        g = made_by[int(one.id.rpartition("-")[2])]
        first, count = g.prompt_tokens, g.completion_tokens
        assert (one.token_ids or [])[first : first + count] == g.token_ids
        learnt = [p < math.log(0.99) for p in g.logprobs or ()]
        assert [bool(m) for m in (one.loss_mask or [])[first : first + count]] == learnt
