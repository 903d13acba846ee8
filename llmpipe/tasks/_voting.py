"""Which of a problem's answers are the same one: the classes that a majority is sought among.

Equal texts are one class, then whole numbers of one value and texts of one normal form, then what
the task's own judge takes for equal: each class is asked of its first answer only. A task whose
problems have several right answers has no such judge: there, each text is a class of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from llmpipe.algo.normal import normal_form
from llmpipe.core.plugins import load
from llmpipe.core.pool import Failure, WorkerPool
from llmpipe.tasks import CPU_SECONDS

_WHOLE = re.compile(r"[+-]?[0-9]{1,300}")

Asked = tuple[str, Sequence[str]]
"""A task, and some answers to one problem of it."""


def answer_classes(asked: Iterable[Asked]) -> Iterator[tuple[list[int], bool]]:
    """For each problem the number of each answer's class, in the order of first answers.

    Problems whose answers need a judge are sent to worker processes, which have a limit of CPU time
    for each. Where that does not suffice, the classes are those of normal forms: the second value
    is then False.
    """
    problems = list(asked)
    hard = [problem for problem in problems if _needs_judge(*problem)]
    warm_up = [(task, ("x", "x + 1")) for task in sorted({task for task, _ in hard})]
    with WorkerPool(
        "llmpipe.tasks._voting:classes", cpu_seconds=CPU_SECONDS, warm_up=warm_up
    ) as pool:
        judged = pool.map(hard)
        for task, answers in problems:
            found = next(judged) if _needs_judge(task, answers) else classes(task, answers)
            if isinstance(found, Failure):
                yield _first_seen(map(_form, answers)), False
            else:
                yield found, True


def classes(task: str, answers: Sequence[str]) -> list[int]:
    """The number of each answer's class; in this process, without a limit."""
    forms = _first_seen(answers if not load("tasks", task).one_answer else map(_form, answers))
    if not _needs_judge(task, answers):
        return forms
    leaders: list[str] = []
    merged: dict[int, int] = {}
    for answer, form in zip(answers, forms, strict=True):
        if form not in merged:
            same = (i for i, leader in enumerate(leaders) if _equal(task, leader, answer))
            merged[form] = next(same, len(leaders))
            if merged[form] == len(leaders):
                leaders.append(answer)
    return [merged[form] for form in forms]


def _needs_judge(task: str, answers: Sequence[str]) -> bool:
    """Whether there are two different answers that may be equal all the same."""
    different = set(answers)
    if len(different) < 2 or not load("tasks", task).one_answer:
        return False
    return not all(map(_WHOLE.fullmatch, different))


def _form(answer: str) -> str:
    return str(int(answer)) if _WHOLE.fullmatch(answer) else normal_form(answer)


def _first_seen(forms: Iterable[str]) -> list[int]:
    numbers: dict[str, int] = {}
    return [numbers.setdefault(form, len(numbers)) for form in forms]


def _equal(task: str, one: str, other: str) -> bool:
    rule = load("tasks", task)
    for gold, said in ((one, other), (other, one)):
        score = rule.judge(gold, "{}", f"\\boxed{{{said}}}", finish_reason="stop", extract="boxed")
        if score.status == "correct":
            return True
    return False
