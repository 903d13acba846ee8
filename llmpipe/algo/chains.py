"""Several problems of rising difficulty in one conversation."""

from __future__ import annotations

import json
import random
import tempfile
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from llmpipe.algo.filter_steps import level_number
from llmpipe.algo.transcripts import split_system
from llmpipe.core.records import Conversation, TrainMessage

MEASURES = ("difficulty", "pass_rate", "level")
"""What says how hard a problem is: columns of Problem, the best one first."""


Hardness = tuple[float | None, float | None, float | None]
"""A number for each of `MEASURES` that rises with difficulty; None where it isn't known."""


@dataclass(frozen=True, slots=True)
class Link:
    """A conversation that may be chained: ``number`` finds it again; all of a chain share ``task``
    and ``system``."""

    number: int
    problem: str
    task: str
    system: str
    hardness: Hardness


def hardness(difficulty: float | None, pass_rate: float | None, level: str | None) -> Hardness:
    """A problem's columns as numbers that rise with difficulty."""
    return difficulty, None if pass_rate is None else -pass_rate, level_number(level)


def measures(links: Sequence[Link]) -> dict[str, int]:
    """For each task which of `MEASURES` to go by: the one that most of its links have."""
    known: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for link in links:
        known[link.task].update(i for i, value in enumerate(link.hardness) if value is not None)
    return {task: max(c, key=lambda i: (c[i], -i)) for task, c in known.items() if c}


def chains(links: Sequence[Link], length: int, seed: int) -> Iterator[list[int]]:
    """The numbers of the links of each chain, in its order; what is left over is alone.

    Links of a task and system message are sorted by hardness and cut into ``length`` strata; a
    chain takes one of each, so that it rises from the set's easiest problems to its hardest (equals
    may follow each other). Which one of a stratum, and which links are left over, is drawn by
    ``seed``. No problem comes twice in a chain: second answers are chained among themselves, third
    ones too. Links of unknown hardness are left over.
    """
    by = measures(links)
    rounds: defaultdict[tuple[str, str, int], list[tuple[float, int]]] = defaultdict(list)
    answers: Counter[str] = Counter()
    for link in links:
        hard = link.hardness[by[link.task]] if link.task in by else None
        if hard is None:
            yield [link.number]
            continue
        rounds[link.task, link.system, answers[link.problem]].append((hard, link.number))
        answers[link.problem] += 1
    for key, members in rounds.items():
        rng = random.Random("\0".join(map(str, (seed, *key))))
        rng.shuffle(members)
        count = len(members) // length
        for _, number in members[count * length :]:
            yield [number]
        rising = sorted(members[: count * length], key=lambda member: member[0])
        strata = [rising[i * count : (i + 1) * count] for i in range(length)]
        for stratum in strata:
            rng.shuffle(stratum)
        for chain in zip(*strata, strict=True):
            yield [number for _, number in chain]


def joined(conversations: Sequence[Conversation]) -> Conversation:
    """One conversation of several with the same system message, which comes once.

    All else stays, also the instruction after each problem: a model is asked that way at any turn.
    Its id names all of them; it has a problem's id only where it is of one problem.
    """
    if len(conversations) == 1:
        return conversations[0]
    system, _ = split_system(conversations[0].messages)
    messages: list[TrainMessage] = [{**m, "train": False} for m in system]
    for conversation in conversations:
        messages += conversation.messages[len(system) :]
    return Conversation(
        id="+".join(c.id for c in conversations),
        problem_id=None,
        source="+".join(dict.fromkeys(c.source for c in conversations)),
        messages=messages,
    )


class Spool:
    """Conversations on disk, found again by their numbers: chains take them from anywhere."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (closed with the spool)
        self._ends = array("q", [0])

    def add(self, conversation: Conversation) -> int:
        """Its number, counted from 0."""
        self._file.write(json.dumps(conversation.as_row()).encode())
        self._ends.append(self._file.tell())
        return len(self._ends) - 2

    def get(self, number: int) -> Conversation:
        self._file.seek(self._ends[number])
        size = self._ends[number + 1] - self._ends[number]
        return Conversation.from_row(json.loads(self._file.read(size)))

    def close(self) -> None:
        self._file.close()
