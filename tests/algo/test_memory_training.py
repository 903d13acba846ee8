"""Training memory, against the papers' own figures and a real model's step."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmpipe.algo.memory.shape import read_shape
from llmpipe.algo.memory.training import (
    NF4_BITS,
    Training,
    lora_parameters,
    memory,
    most_rows,
    most_tokens,
)

LLAMA = read_shape(
    {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
    }
)


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_states_are_those_of_the_zero_paper(zero: int, gigabytes: float) -> None:
    """Its figure 1: 7.5 billion parameters on 64 GPUs."""
    held = memory(LLAMA, Training(zero=zero, gpus=64))
    states = held.weights + held.gradients + held.optimizer
    assert states / LLAMA.parameters * 7.5 == pytest.approx(gigabytes, abs=0.05)


def test_float32_gradients_and_float32_training() -> None:
    plain, summed, full = (
        memory(LLAMA, Training(**given))
        for given in ({}, {"gradient_bytes": 4}, {"gradient_bytes": 4, "value_bytes": 4})
    )
    parameters = LLAMA.parameters
    assert summed.gradients - plain.gradients == 2 * parameters
    # A float32 weight is its own master copy.
    assert (full.weights, full.optimizer) == (4 * parameters, 8 * parameters)


def test_activations_by_hand() -> None:
    """Llama-3.1-8B, of one token, in 16 bits."""
    norms = 2 * (4 + 2) * 4096
    attention = 2 * (2 * 4096 + 2 * 1024) + 4 * 32
    inputs = 2 * (2 * 4096 + 14336)
    layer = norms + attention + inputs + 2 * 3 * 14336
    last = (4 + 2) * 4096 + 2 * 4096
    held = memory(LLAMA, Training(context=1000))
    assert held.activations == 1000 * (32 * layer + last)
    assert held.logits == 1000 * 14 * 128256
    assert memory(LLAMA, Training(context=1000, loss_chunk=10)).logits == 10 * 14 * 128256
    # With checkpointing a layer keeps its input; what it needs when it is run again is less here
    # than what the logits took.
    few = memory(LLAMA, Training(context=1000, checkpointing=True))
    assert few.activations == 1000 * (32 * 2 * 4096 + last)
    assert few.logits == held.logits
    chunked = memory(LLAMA, Training(context=8000, checkpointing=True, loss_chunk=1))
    assert chunked.logits == 8000 * layer
    # One token: in the end the embedding's gradient is all there is, of a tied one thrice.
    one = memory(LLAMA, Training(context=1))
    embedding = 2 * 128256 * 4096
    assert one.activations + one.logits == embedding + 2 * 128256
    one = memory(replace(LLAMA, tied=True), Training(context=1))
    assert one.activations + one.logits == 3 * embedding + 2 * 128256


def test_adapters_and_four_bits() -> None:
    # Of rank 1: the inputs and outputs of the seven maps of a layer.
    maps = 4096 * 2 + (4096 + 1024) * 2 + 4096 * 2 + (4096 + 14336) * 3
    assert lora_parameters(LLAMA, 1) == 32 * maps
    trained = lora_parameters(LLAMA, 16)
    lora = memory(LLAMA, Training(method="lora", lora_rank=16))
    assert lora.weights == 2 * LLAMA.parameters + 4 * trained
    assert (lora.gradients, lora.optimizer) == (4 * trained, 8 * trained)
    assert pytest.approx(4.127, abs=5e-4) == NF4_BITS  # the QLoRA paper's figure
    qlora = memory(LLAMA, Training(method="qlora", lora_rank=16))
    saved = (2 - NF4_BITS / 8) * LLAMA.linear_weights
    assert lora.weights - qlora.weights == pytest.approx(saved, abs=1)
    assert qlora.working == 2 * 4096 * 14336


def test_peft_makes_as_many_adapters(smol_model: Path) -> None:
    torch = pytest.importorskip("torch")
    peft = pytest.importorskip("peft")
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(smol_model))
        settings = peft.LoraConfig(r=16, target_modules="all-linear")
        model = peft.get_peft_model(model, settings)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    shape = read_shape(json.loads((smol_model / "config.json").read_text()))
    assert lora_parameters(shape, 16) == trained


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_the_largest_that_fits(method: Any, checkpointing: bool) -> None:
    way = Training(
        method=method, checkpointing=checkpointing, zero=3, gpus=8, context=2000, loss_chunk=4000
    )
    room = 64 << 30
    rows, tokens = most_rows(LLAMA, way, room), most_tokens(LLAMA, way, room)
    assert rows > 0
    for name, most in (("micro_batch", rows), ("context", tokens)):
        fitting, over = (
            memory(LLAMA, replace(way, **{name: size})).total for size in (most, most + 1)
        )
        assert fitting <= room < over
    assert most_rows(LLAMA, way, 1 << 30) == most_tokens(LLAMA, way, 1 << 30) == 0


def test_each_stage_holds_less() -> None:
    totals = [memory(LLAMA, Training(zero=zero, gpus=8)).total for zero in range(4)]
    assert totals == sorted(totals, reverse=True)
    alone = {memory(LLAMA, Training(zero=zero)).total for zero in range(4)}
    assert len(alone) == 1


@pytest.mark.slow
def test_a_real_model_s_step(smol_model: Path, tmp_path: Path) -> None:
    """What torch has allocated at its peak, in float32 with gradients that are there already."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM

    shape = read_shape(json.loads((smol_model / "config.json").read_text()))
    model = AutoModelForCausalLM.from_pretrained(smol_model, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    moments = [s[name] for s in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    model.train()
    for checkpointing in (False, True):
        way = Training(checkpointing=checkpointing, context=256, value_bytes=4, gradient_bytes=4)
        held = memory(shape, way)
        assert held.weights == sum(p.nbytes for p in model.parameters())
        assert held.gradients == sum(p.grad.nbytes for p in model.parameters())
        assert held.optimizer == sum(moment.nbytes for moment in moments)
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        measured = _peak(model, way.tokens, tmp_path / "trace.json")
        assert held.activations + held.logits == pytest.approx(measured, rel=0.05)


def _peak(model: Any, tokens: int, trace: Path) -> int:
    """The most bytes that a forward and a backward pass have allocated at once."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    ids = torch.arange(tokens)[None] + 100
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        made = model(input_ids=ids, labels=ids, use_cache=False)
        made.loss.backward()  # while the logits are held, as they are in many a loop
    profiler.export_chrome_trace(str(trace))
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["name"] == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    return max(itertools.accumulate(event["args"]["Bytes"] for event in events))
