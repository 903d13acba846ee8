"""A tree of artifacts to look at: mathematics, a maze, and a model that tries to get out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from helpers import make_artifact

from llmpipe import verify_math, verify_maze
from llmpipe.core.records import Conversation, Pair, Problem, Rewards, Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.stages import score

MAZE = "S.*\n*..\n*.E"
HOSTILE = (
    "<think>I am <b>sure</b>.</think>\n<script>document.title = 'gone'</script>"
    '<img src="http://127.0.0.1:9/x" onerror="document.title = 1">\n'
    r"$\href{javascript:document.title=2}{x}$ </textarea></script></body>"
    "\N{RIGHT-TO-LEFT OVERRIDE}"
    r" so \boxed{3/4}."
)
PROBLEMS = [
    Problem.make(
        task="math",
        source="made",
        prompt=r"A pen is $5, a book $10. Let $\frac{a}{b} = \sqrt{9/16}$; find $$\frac{a}{b}.$$",
        answer=r"\frac{3}{4}",
        level="Level 2",
        solution=r"It is \(\boxed{\frac34}\).",
    ),
    Problem.make(
        task="math", source="made", prompt="What is <i>1</i> + 1?", answer="2", level="Level 1"
    ),
    Problem.make(task="maze", source="made", prompt=MAZE, answer="RDDR", payload={"maze": MAZE}),
]
RESPONSES = [
    [HOSTILE, r"It is \boxed{3}, or \boxed{\frac{3}{5}}."],
    ["The answer is 2.", r"2, no: \boxed{3}."],
    [r"\boxed{RDDR}", r"Right, right, so \boxed{R, R, D, D}."],
]


def _sampled(problem: Problem, sample: int, text: str) -> Rollout:
    shots = [("user", "What is 2 + 2?"), ("assistant", r"\boxed{4}")]
    turns = [*(shots if problem.task == "math" else []), ("user", problem.prompt)]
    return Rollout(
        problem_id=problem.id,
        sample=sample,
        seed=7,
        messages=[{"role": r, "content": c} for r, c in [*turns, ("assistant", text)]],
        completion=text,
        finish_reason="stop",
        prompt_tokens=20,
        completion_tokens=len(text),
    )


def _judged(problem: Problem, row: Rollout) -> Verdict:
    if problem.task == "maze":
        found = verify_maze(MAZE, row.completion)
    else:
        found = verify_math(problem.answer, row.completion)
    return Verdict(
        problem_id=problem.id,
        sample=row.sample,
        status=found.status,
        extracted=found.extracted,
        detail=found.detail,
        optimal=found.optimal,
        rewards=Rewards(outcome=float(found.status == "correct")),
    )


def _conversation(number: int) -> Conversation:
    return Conversation(
        id=f"c{number}",
        problem_id=None,
        source="made",
        messages=[
            {"role": "user", "content": "Hi", "train": False},
            {"role": "assistant", "content": "<b>Hello</b>", "train": True},
        ],
    )


def make_tree(folder: Path) -> Path:
    """``problems``, ``rollouts``, ``verdicts``, ``eval``, ``sft`` and ``pairs`` in a folder."""
    make_artifact(folder / "problems", PROBLEMS, stage="prepare")
    sampled = [
        (p, _sampled(p, s, text))
        for p, texts in zip(PROBLEMS, RESPONSES, strict=True)
        for s, text in enumerate(texts)
    ]
    rows = [row for _, row in sampled]
    made = make_artifact(
        folder / "rollouts",
        [replace(row, token_ids=[1, 2], logprobs=[-1, -2]) for row in rows],
        stage="rollout",
        inputs={"problems": folder / "problems"},
        details={"few_shot_messages": {"math": 2, "maze": 0}},
    )
    judged = [_judged(p, row) for p, row in sampled]
    make_artifact(folder / "verdicts", judged, stage="verify", inputs={"rollouts": made})
    score.run(score.Config(k=(1, 2)), folder / "verdicts", folder / "eval", Mode())
    make_artifact(
        folder / "sft",
        [_conversation(i) for i in range(60)],
        stage="build-sft",
    )
    pair = Pair(
        id="x",
        problem_id="y",
        source="made",
        prompt=[{"role": "user", "content": "1 + 1?"}],
        chosen=[{"role": "assistant", "content": "2"}],
        rejected=[{"role": "assistant", "content": "3"}],
    )
    make_artifact(folder / "pairs", [pair], stage="build-pairs")
    return folder
