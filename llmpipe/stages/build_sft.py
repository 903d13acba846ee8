"""Make SFT conversations: of sampled answers, of problems with solutions, or of anybody's chats."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llmpipe.algo.attempts import Attempts
from llmpipe.algo.chat import ChatTokenizer
from llmpipe.algo.chat_rows import find_chat_keys, read_chat
from llmpipe.algo.conversations import TURNS, batched, samples, with_loss, with_system
from llmpipe.algo.mastered import Sampled, mask_mastered, mean_entropy
from llmpipe.algo.prompts import load_chat_tokenizer, tokenizer_files
from llmpipe.algo.sampled_chats import (
    Made,
    SampledChats,
    chained,
    read_problems,
    sound,
    with_pass_rates,
)
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Drop, Task
from llmpipe.core.records import Conversation, Message, Problem, Rollout, Score, Verdict
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute
from llmpipe.core.sources import is_foreign, open_source
from llmpipe.tasks import ask

log = logging.getLogger(__name__)

STYLES = ("single", "retry", "chain")
_CHECK_EVERY = 1000  # rows between two words on progress
_TOKENISED = 256  # conversations tokenised at a time


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a conversation is made of, and where its loss lies.

    ``turns`` is one of `TURNS` and ``style`` one of `STYLES`; a chain has ``chain_length``
    problems, drawn by ``seed``. ``system`` takes the place of the system message, or is put first
    where there is none. ``keep_few_shot`` keeps the worked examples of the prompt, without loss.
    ``prompt_template`` is how problems with solutions are put, as in `llmpipe.tasks.ask`.
    ``fallback`` "gold" adds the solutions of problems that were never answered right.
    ``mask_mastered`` and ``target_entropy`` are as in `llmpipe.algo.mastered`. ``keys`` and
    ``split`` say where rows of somebody else's have what (`llmpipe.algo.chat_rows`).
    """

    turns: str = "merged"
    style: str = "single"
    chain_length: int = 3
    seed: int = 0
    system: str | None = None
    keep_few_shot: bool = False
    prompt_template: str | None = None
    fallback: str | None = None
    mask_mastered: float | None = None
    target_entropy: float | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    split: str | None = None


def run(
    config: Config,
    source: Path,
    out: Path,
    mode: Mode,
    *,
    problems: Path | None = None,
    verdicts: Path | None = None,
    rollouts: Path | None = None,
    tokenizer: Path | None = None,
) -> Result:
    """Conversations from rollouts (all of them: `select` chooses), problems, or a file of chats.

    From a rollout: its transcript without worked examples, the answer's turns with loss. Its
    problem says the source; how many messages are worked examples stands in the rollouts' manifest.
    From a problem: its prompt with the task's instruction, and its solution. From somebody else's
    rows: see `llmpipe.algo.chat_rows`; they are named NAME-ROW, and rows counted from 1.

    Style retry puts a wrong answer to the problem and what the task replies to it before a right
    one, both without loss (PROBLEM-SAMPLE-rWRONG); it needs the verdicts and all rollouts that the
    input was selected from, and drops what has no wrong answer. Rollouts of several turns stay as
    they are, with loss on the last. Style chain joins problems, see `llmpipe.algo.chains`.

    Raises:
        UserError: other rows there, a lineage that leads to no problems (or verdicts, rollouts), an
            unknown form, or settings that don't go together.
    """
    _check(config, tokenizer)
    if is_foreign(source):
        if problems or verdicts or rollouts:
            raise UserError(
                f"{source} was not made by llmpipe: nothing was sampled of it",
                "leave --problems, --verdicts and --rollouts out",
            )
        return _from_rows(config, source, out, mode)
    rows = Artifact.open(source, Rollout, Problem)
    if config.prompt_template and rows.manifest.record != Problem.__name__:
        raise UserError(
            f"{source} has the prompts that were sampled: none is put again",
            "leave --prompt-template out",
        )
    if config.keys or config.split:
        raise UserError(f"{source} is an artifact: it takes no keys or split", "leave them out")
    if rows.manifest.record == Problem.__name__:
        if problems or verdicts or rollouts:
            raise UserError(
                f"{source} holds problems: nothing was sampled of them",
                "leave --problems, --verdicts and --rollouts out",
            )
        return _from_problems(config, rows, out, mode)
    return _from_rollouts(
        config,
        rows,
        rows.upstream(Problem, problems),
        out,
        mode,
        verdicts=verdicts,
        sampled=rollouts,
        tokenizer=tokenizer,
    )


def _check(config: Config, tokenizer: Path | None) -> None:
    if config.turns not in TURNS:
        raise UserError(f"turns is {config.turns!r}", f"one of: {', '.join(TURNS)}")
    if config.style not in STYLES:
        raise UserError(f"style is {config.style!r}", f"one of: {', '.join(STYLES)}")
    if config.fallback not in (None, "gold"):
        raise UserError(f"fallback is {config.fallback!r}", "--fallback gold")
    if config.chain_length < 2:
        raise UserError(f"chain-length is {config.chain_length}", "--chain-length 3")
    if config.chain_length != Config.chain_length and config.style != "chain":
        raise UserError("--chain-length needs --style chain", "--style chain")
    if config.style == "chain" and config.keep_few_shot:
        raise UserError("a chain has no place for worked examples", "leave --keep-few-shot out")
    least, target = config.mask_mastered, config.target_entropy
    if (least, target, tokenizer) == (None, None, None):
        return
    if least is None or target is None or tokenizer is None:
        raise UserError(
            "masking tokens takes a probability, an entropy and a tokenizer",
            "--mask-mastered 0.99 --target-entropy 0.2 --tokenizer MODEL",
        )
    if not (0 < least <= 1 and target > 0):
        raise UserError(
            f"the probability {least:g} must be in 0 to 1, the entropy {target:g} over 0",
            "--mask-mastered 0.99 --target-entropy 0.2",
        )
    if config.style != "single" or config.system or config.fallback:
        raise UserError(
            "log-probabilities are those of the answer in its own conversation",
            "leave --style, --system and --fallback out with --mask-mastered",
        )


def _from_problems(config: Config, problems: Artifact, out: Path, mode: Mode) -> Result:
    of_rollouts = config.fallback or config.mask_mastered or config.keep_few_shot
    if config.style == "retry" or of_rollouts:
        raise UserError(
            f"{problems.path} holds problems: nothing was sampled of them",
            "leave out --style retry, --fallback, --mask-mastered and --keep-few-shot",
        )
    known = read_problems(problems)
    spec = _spec(config, {"problems": problems}, out, {problem.task for problem in known.values()})

    def made(writer: Writer) -> Iterator[Made]:
        for problem in problems.iter_rows(Problem):
            writer.read += 1
            writer.progress(writer.read, problems.rows)
            if not (problem.solution or "").strip():
                writer.reject(problem.id, "no_solution")
                continue
            words = ask(problem.task, problem.prompt, config.prompt_template)
            asked: Message = {"role": "user", "content": words}
            answer: Message = {"role": "assistant", "content": problem.solution or ""}
            conversation = Conversation(
                id=problem.id,
                problem_id=problem.id,
                source=problem.source,
                messages=with_system(with_loss([asked, answer]), config.system),
            )
            if sound(conversation, writer):
                yield Made(conversation, known[problem.id])

    return execute(spec, lambda writer: _write(config, made(writer), writer), mode)


def _from_rows(config: Config, path: Path, out: Path, mode: Mode) -> Result:
    of_problems = config.fallback or config.mask_mastered or config.prompt_template
    if config.style != "single" or config.keep_few_shot or of_problems:
        raise UserError(
            f"{path} was not made by llmpipe: nothing is known of its rows' problems",
            "leave out --style, --fallback, --mask-mastered, --keep-few-shot, --prompt-template",
        )
    if "messages" in config.keys and {"prompt", "response"} & config.keys.keys():
        raise UserError(
            "turns lie in one column or in two",
            "--messages-key, or --prompt-key and --response-key",
        )
    source = open_source(path, split=config.split)
    if not source.columns:
        raise UserError(f"{path} has no rows", "check the file")
    try:
        keys = find_chat_keys(source.columns, **config.keys)
    except KeyError as e:
        missing = "columns with turns" if e.args[0] == "messages" else f"column {e.args[0]}"
        raise UserError(
            f"{path} has no {missing}; it has {', '.join(source.columns)}",
            "--messages-key COLUMN, or --prompt-key COLUMN --response-key COLUMN",
        ) from None

    def made(writer: Writer) -> Iterator[Made]:
        writer.details["layout"] = keys.layout
        name = path.resolve().name.partition(".")[0]
        for number, row in enumerate(source.read(keys.columns(source.columns)), 1):
            writer.read += 1
            if number % _CHECK_EVERY == 0:
                writer.progress(number, None)
            chat = read_chat(row, keys)
            if isinstance(chat, Drop):
                writer.reject(f"{name}-{number}", chat.reason, chat.detail)
                continue
            conversation = Conversation(
                id=f"{name}-{number}",
                problem_id=None,
                source=name,
                messages=with_system(chat.messages, config.system),
                tools=chat.tools,
            )
            if sound(conversation, writer):
                yield Made(conversation)

    spec = _spec(config, {"rows": path}, out)
    return execute(spec, lambda writer: _write(config, made(writer), writer), mode)


def _from_rollouts(
    config: Config,
    rollouts: Artifact,
    asked: Artifact,
    out: Path,
    mode: Mode,
    *,
    verdicts: Path | None,
    sampled: Path | None,
    tokenizer: Path | None,
) -> Result:
    problems = read_problems(asked)
    inputs: dict[str, Input] = {"rollouts": rollouts, "problems": asked}
    unmeasured = all(set(p.hardness) == {None} for p in problems.values())
    judged = everything = None
    if config.style == "retry" or config.fallback or (config.style == "chain" and unmeasured):
        judged = rollouts.upstream(Verdict, verdicts)
        everything = judged.upstream(Rollout, sampled)
        inputs |= {"verdicts": judged, "sampled": everything}
    shots = rollouts.manifest.details.get("few_shot_messages", {})
    if config.mask_mastered and any(shots.values()) and not config.keep_few_shot:
        raise UserError(
            f"{rollouts.path} was sampled with worked examples, which its log-probabilities go by",
            "--keep-few-shot",
        )
    if tokenizer:
        inputs |= {f"tokenizer/{file.name}": file for file in tokenizer_files(tokenizer)}
    tasks = {problem.task for problem in problems.values()} if config.style == "retry" else ()
    spec = _spec(config, inputs, out, tasks)

    def build(writer: Writer) -> None:
        attempts = Attempts(judged, everything, seed=config.seed) if judged and everything else None
        chats = SampledChats(
            rollouts,
            asked,
            with_pass_rates(problems, attempts) if attempts and unmeasured else problems,
            writer,
            system=config.system,
            keep_few_shot=config.keep_few_shot,
            logprobs=config.mask_mastered is not None,
        )
        if attempts and config.style == "retry":
            made = chats.retries(attempts, _reply)
        else:
            made = chats.all()
        if attempts and config.fallback:
            made = itertools.chain(made, chats.gold(attempts))
        _write(config, made, writer, tokenizer=tokenizer, rollouts=rollouts)
        if rollouts.manifest.stage == "rollout" and config.style != "retry":
            log.warning(
                "all answers of %s are learnt, the wrong ones, too: llmpipe verify and llmpipe "
                "select keep the right ones",
                rollouts.path,
            )
        several = writer.figures.get("several_answers")
        if several and config.style != "retry" and config.turns != "last":
            log.warning(
                "%d rollouts have several answers, of which only the last is right, and all are "
                "learnt: --style retry, or --turns last, gives the others no loss",
                several,
            )

    return execute(spec, build, mode)


def _reply(problem: Problem, messages: Sequence[Message], score: Score) -> str | None:
    task: Task = load("tasks", problem.task)
    return task.reply(problem, messages, score)


def _spec(
    config: Config, inputs: Mapping[str, Input], out: Path, tasks: Iterable[str] = ()
) -> Spec:
    return Spec(
        stage="build-sft",
        record=Conversation,
        config=config,
        inputs=inputs,
        out=out,
        version=2,
        plugins=[("tasks", task) for task in sorted(tasks)],
        libraries=("transformers", "tokenizers") if config.mask_mastered else (),
    )


def _write(
    config: Config,
    made: Iterator[Made],
    writer: Writer,
    *,
    tokenizer: Path | None = None,
    rollouts: Artifact | None = None,
) -> None:
    """The training samples of conversations, chained or masked where that is wanted."""
    if config.style == "chain":
        made = chained(made, config.chain_length, config.seed, writer)
    drawn = _samples(config, made, writer)
    done: Iterable[Conversation] = (sample for sample, _ in drawn)
    if tokenizer and rollouts and config.mask_mastered and config.target_entropy:
        entropy = mean_entropy(rollouts)
        masking = entropy < config.target_entropy
        writer.figures |= {"entropy": round(entropy, 4), "masking": masking}
        log.info(
            "the entropy is %.4g nats a token: %s",
            entropy,
            "tokens are masked" if masking else "at or over the target, so nothing is masked",
        )
        if masking:
            chat = ChatTokenizer(load_chat_tokenizer(tokenizer))
            done = _masked(config.mask_mastered, drawn, chat, writer)
    trained = 0
    for sample in done:
        trained += sum(m["train"] for m in sample.messages)
        writer.add(sample)
    writer.figures["trained_turns"] = trained


def _samples(
    config: Config, made: Iterable[Made], writer: Writer
) -> Iterator[tuple[Conversation, Sampled | None]]:
    """Samples by ``config.turns``; how one was sampled is known where it ends as a rollout does."""
    for conversation, _, _, sampled in made:
        found = samples(conversation, config.turns)
        if not found:
            writer.reject(conversation.id, "nothing_to_learn", "no loss on the last turn")
        for sample in found:
            whole = len(sample.messages) == len(conversation.messages)
            yield sample, sampled if whole else None


def _masked(
    least: float,
    drawn: Iterable[tuple[Conversation, Sampled | None]],
    tokenizer: ChatTokenizer,
    writer: Writer,
) -> Iterator[Conversation]:
    """Samples without loss on well-mastered tokens, as far as it is known how they were sampled."""
    tokens = mastered = 0
    for batch in batched(drawn, _TOKENISED):
        known = [(sample, how) for sample, how in batch if how]
        masked = iter(mask_mastered(tokenizer, known, least))
        for sample, how in batch:
            result = next(masked) if how else sample
            if isinstance(result, Drop):
                writer.reject(sample.id, result.reason, result.detail)
                continue
            if how:
                tokens += len(how.logprobs)
                mastered += int(how.mastered(least).sum())
            yield result
    writer.figures |= {"sampled_tokens": tokens, "masked_tokens": mastered}
