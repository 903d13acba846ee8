#!/usr/bin/env bash
# Make .venv/trainers with LLaMA-Factory and verl, whose own data set code reads llmpipe's exports in
# tests/exporters. An environment of its own: what they require doesn't fit beside vLLM. Some GB.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
"$python" -m venv .venv/trainers
pip() { .venv/trainers/bin/python -m pip --quiet --disable-pip-version-check "$@"; }
pip install llamafactory==0.9.5
# Only its data set code is wanted, not the engines that it requires.
pip install --no-deps verl==0.9.1
pip install tensordict omegaconf codetiming ray cachetools dill
echo "done: .venv/trainers" >&2
