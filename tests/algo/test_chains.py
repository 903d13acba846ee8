from __future__ import annotations

from pathlib import Path

from llmpipe.algo.chains import Link, Spool, chains, hardness, joined, measures
from llmpipe.algo.conversations import with_loss
from llmpipe.core.records import Conversation, Message


def link(number: int, hard: float | None, *, problem: str = "", system: str = "") -> Link:
    return Link(number, problem or f"p{number}", "math", system, (hard, None, None))


def test_hardness_rises_with_difficulty() -> None:
    assert hardness(0.5, 0.25, "Level 4") == (0.5, -0.25, 4.0)
    assert hardness(None, None, "hard") == (None, None, None)
    assert hardness(None, None, None) == (None, None, None)


def test_a_chain_takes_one_of_each_stratum() -> None:
    hard = {i: float(i * 7 % 10) for i in range(10)}
    made = list(chains([link(i, h) for i, h in hard.items()], 3, seed=0))
    long = [c for c in made if len(c) == 3]
    assert sorted(map(len, made)) == [1, 3, 3, 3]
    assert sorted(n for c in made for n in c) == list(range(10))
    for chain in long:
        assert [hard[n] for n in chain] == sorted(hard[n] for n in chain)
    # The easiest of one chain is no harder than the second of another.
    for place in (0, 1):
        assert max(hard[c[place]] for c in long) <= min(hard[c[place + 1]] for c in long)


def test_the_seed_says_which_go_together() -> None:
    links = [link(i, i / 40) for i in range(40)]
    first = list(chains(links, 4, seed=1))
    assert first == list(chains(links, 4, seed=1))
    assert first != list(chains(links, 4, seed=2))


def test_no_problem_comes_twice_in_a_chain() -> None:
    links = [link(i, i // 3 / 8, problem=f"p{i // 3}") for i in range(24)]
    made = [c for c in chains(links, 2, seed=3) if len(c) == 2]
    assert len(made) == 12
    assert all(a // 3 != b // 3 for a, b in made)


def test_tasks_and_system_messages_are_kept_apart() -> None:
    links = [link(i, float(i), system="brief" if i % 2 else "") for i in range(8)]
    links += [Link(8 + i, f"m{i}", "maze", "", (float(i), None, None)) for i in range(4)]
    kinds = {one.number: (one.task, one.system) for one in links}
    for chain in chains(links, 2, seed=0):
        assert len({kinds[n] for n in chain}) == 1


def test_each_task_goes_by_what_most_of_its_problems_have() -> None:
    links = [Link(i, f"p{i}", "math", "", (None, -0.5, float(i))) for i in range(3)]
    links += [Link(3, "p3", "math", "", (None, None, 0.5)), Link(4, "m", "maze", "", (0.1, -1, 7))]
    links += [Link(5, "x", "none", "", (None, None, None))]
    assert measures(links) == {"math": 2, "maze": 0}
    assert [5] in list(chains(links, 2, seed=0))


def conversation(name: str, *, source: str = "s", system: bool = True) -> Conversation:
    messages: list[Message] = [{"role": "system", "content": "Brief."}] if system else []
    messages += [{"role": "user", "content": f"q {name}"}]
    messages += [{"role": "assistant", "content": f"a {name} 😀"}]
    return Conversation(id=name, problem_id=name, source=source, messages=with_loss(messages))


def test_joined_conversations_have_one_system_message() -> None:
    made = joined([conversation("a"), conversation("b", source="t"), conversation("c")])
    assert (made.id, made.problem_id, made.source) == ("a+b+c", None, "s+t")
    assert [m["content"] for m in made.messages] == [
        *("Brief.", "q a", "a a 😀", "q b", "a b 😀", "q c", "a c 😀")
    ]
    assert [m["train"] for m in made.messages] == [False] + [False, True] * 3
    alone = conversation("a", system=False)
    assert joined([alone]) is alone


def test_a_spool_gives_back_what_was_added_in_any_order(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    rows = [conversation(str(i)) for i in range(5)]
    assert [spool.add(row) for row in rows] == [0, 1, 2, 3, 4]
    assert [spool.get(i) for i in (3, 0, 4, 3)] == [rows[3], rows[0], rows[4], rows[3]]
    spool.close()
    assert list(tmp_path.iterdir()) == []
