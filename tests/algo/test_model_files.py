"""Which files of a model's repo are left out, on listings as real repos have them."""

from __future__ import annotations

import pytest

from llmpipe.algo.model_files import doubles

ALWAYS = ["config.json", "tokenizer.json", "tokenizer.model", "README.md", ".gitattributes"]


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        pytest.param(
            [
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
            ],
            ["original/consolidated.00.pth", "original/params.json", "original/tokenizer.model"],
            id="llama",
        ),
        pytest.param(
            [
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
                "params.json",
            ],
            ["consolidated.safetensors", "consolidated.safetensors.index.json"],
            id="mistral",
        ),
        pytest.param(
            ["model.safetensors", "vocab.txt"],
            [
                "pytorch_model.bin",
                "tf_model.h5",
                "flax_model.msgpack",
                "rust_model.ot",
                "onnx/model.onnx",
                "onnx/config.json",
                "coreml/float32_model.mlpackage/Data/w.bin",
            ],
            id="bert",
        ),
        pytest.param(
            ["pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json"],
            ["tf_model.h5", "flax_model.msgpack.index.json", "optimizer.pt", "rng_state_0.pth"],
            id="pickles only",
        ),
        pytest.param(
            ["model.safetensors", "model.safetensors.index.json", "training_args.bin"],
            ["pytorch_model.bin.index.json", "pytorch_model-00001-of-00001.bin", "scheduler.pt"],
            id="index of the pickles",
        ),
        pytest.param(
            ["adapter_model.safetensors", "adapter_config.json"], ["adapter_model.bin"], id="lora"
        ),
        pytest.param(
            ["model.safetensors", "2_Dense/model.safetensors", "3_Dense/pytorch_model.bin"],
            ["2_Dense/pytorch_model.bin"],
            id="parts in folders, each by its own",
        ),
        pytest.param(
            ["model.safetensors", "big.fp16.safetensors"], ["model.fp16.safetensors"], id="variant"
        ),
        pytest.param(["consolidated.safetensors"], [], id="only as first released"),
        pytest.param(
            ["adapter_model.safetensors", "pytorch_model.bin"], [], id="an adapter beside its base"
        ),
        pytest.param(
            ["model-00001-of-00002.safetensors", "pytorch_model.bin"], [], id="a shard is missing"
        ),
        pytest.param(["a.Q4_K_M.gguf", "a.Q8_0.gguf"], [], id="llama.cpp only"),
        pytest.param(["unet/model.safetensors", "unet/model.bin"], [], id="nothing at the root"),
    ],
)
def test_what_doubles_the_weights_is_left_out(kept: list[str], left: list[str]) -> None:
    assert set(doubles([*ALWAYS, *kept, *left])) == set(left)


def test_the_reason_is_given() -> None:
    found = doubles(["model.safetensors", "pytorch_model.bin", "original/params.json"])
    assert found["pytorch_model.bin"] == "another format of the weights"
    assert "original/" in found["original/params.json"]
