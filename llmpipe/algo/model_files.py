"""Which files of a model's repo hold what its other files hold already.

A repo on the hub often has its weights several times: for PyTorch as safetensors and as pickles,
for TensorFlow, JAX, ONNX or llama.cpp, and as its makers first released them (``original/`` of
Llama, ``consolidated*.safetensors`` of Mistral, ``metal/`` of gpt-oss). vLLM and transformers read
one of them: safetensors where they are there, else ``pytorch_model*.bin``.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

_OTHER_FOLDERS = {"original", "metal", "onnx", "openvino", "coreml", "gguf", "tflite"}
_OTHER_SUFFIXES = {".h5", ".msgpack", ".ot", ".onnx", ".onnx_data", ".tflite", ".gguf", ".mlmodel"}
_PICKLES = {".bin", ".pt", ".pth", ".ckpt"}
_PICKLED_WEIGHTS = re.compile(r"(.*[._-])?(model|consolidated)([._-].*)?")
_TRAINING_STATE = re.compile(r"(optimizer|scheduler|rng_state\w*|scaler)\.(pt|pth|bin)")
_SHARD = re.compile(r"(.*-)(\d+)-of-(\d+)(\..*)")
_VARIANT = re.compile(r"\.(fp16|bf16|fp32|non_ema)(?=[.-])")

Part = tuple[str, bool]


def doubles(paths: Collection[str]) -> dict[str, str]:
    """The files that a model can be loaded without, each with the reason.

    Empty where a repo has weights neither as safetensors nor as PyTorch pickles at its root: then
    nobody can say which of its files are wanted.
    """
    names = set(paths)
    safe = {_part(p) for p in names if _is_safetensors(p) and _all_shards(p, names)}
    pickled = {_part(p) for p in names if _is_pickle(p)}
    if not any(folder == "" for folder, _ in safe | pickled):
        return {}
    found = {path: _reason(path, names, safe) for path in sorted(names)}
    return {path: reason for path, reason in found.items() if reason}


def _reason(path: str, names: Collection[str], safe: Collection[Part]) -> str | None:
    pure = PurePosixPath(_weights_of(path))
    if len(pure.parts) > 1 and pure.parts[0] in _OTHER_FOLDERS:
        return f"{pure.parts[0]}/ holds the weights in another form"
    if any(part.endswith(".mlpackage") for part in pure.parts[:-1]):
        return "another format of the weights"
    if _TRAINING_STATE.fullmatch(pure.name):
        return "training state"
    if pure.suffix in _OTHER_SUFFIXES:
        return "another format of the weights"
    if _part(path) not in safe:
        return None
    if _is_pickle(path):
        return "another format of the weights"
    if pure.name.startswith("consolidated"):
        return "the weights as first released"
    plain = _VARIANT.sub("", path, count=1)
    if plain != path and plain in names:
        return "a copy in another precision"
    return None


def _part(path: str) -> Part:
    """What a file holds weights of: its folder, and whether they are an adapter's."""
    folder, _, name = path.rpartition("/")
    return folder, name.startswith("adapter")


def _all_shards(path: str, names: Collection[str]) -> bool:
    """Whether a file is whole, or one of a set that is: name-00001-of-00002."""
    shard = _SHARD.fullmatch(path)
    if not shard:
        return True
    start, _, of, end = shard.groups()
    return all(f"{start}{i:0{len(of)}}-of-{of}{end}" in names for i in range(1, int(of) + 1))


def _weights_of(path: str) -> str:
    """The weights that an index is of; any other path as it is."""
    return path.removesuffix(".index.json")


def _is_safetensors(path: str) -> bool:
    """Whether these are weights as transformers names them."""
    name = path.rpartition("/")[2]
    return name.endswith(".safetensors") and not name.startswith("consolidated")


def _is_pickle(path: str) -> bool:
    pure = PurePosixPath(_weights_of(path))
    return pure.suffix in _PICKLES and bool(_PICKLED_WEIGHTS.fullmatch(pure.stem))
