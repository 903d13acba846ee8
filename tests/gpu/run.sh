#!/usr/bin/env bash
# What rollouts promise, on a real GPU in a few minutes; nothing is fetched:
#
#     MODEL=models/Qwen/Qwen2.5-1.5B-Instruct bash tests/gpu/run.sh [--only NAME]...
#
# Without MODEL it takes the small model that pipelines/smollm2.py makes; where there is no GPU, tiny
# sizes on the CPU, which try the checks rather than the engine.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -f .venv/bin/activate ]; then source .venv/bin/activate; fi
if [ -z "${MODEL:-}" ]; then
    MODEL=models/HuggingFaceTB/SmolLM2-135M-Instruct
    python pipelines/smollm2.py --out "$MODEL"
fi
exec python tests/gpu/checks.py --model "$MODEL" "$@"
