# ruff: noqa: E501, SIM905 - whole sentences, and word lists, are read more easily as text
"""A corpus of made-up problems with planted copies and traps, for `benchmarks/dedupe.py`.

The edits are made by another route than the rules' word lists: slips of single letters anywhere in
a word, synonyms, sentences in another order, questions put in another frame, notes added. The
traps, which are no copies, change one number, exchange two, or turn one word of the question.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

NAMES = """Ada Ben Cleo Dan Eva Finn Gita Hal Ines Jon Kira Leo Mina Ned Olga Pia Quinn Rosa Sam
Tess Uma Vic Wendy Yara Zane Amir Bela Chen Dora Emil""".split()
THINGS = """pencils marbles stickers shells cookies stamps buttons coins cards beads ribbons kites
lanterns mugs plums peaches tiles ropes bulbs candles""".split()
PLACES = "market harbor library museum station bakery orchard workshop theater stadium".split()
FRAMES = [
    "{A} buys {n} boxes of {t} at the {p}. Each box holds {m} {t}. If {A} hands {k} {t} to {B}, how many {t} are still there?",
    "A farmer stores {n} {t} in crates of {m}. The crates cost ${k} apiece. What is the total price of the crates?",
    "{A} walks {n} km to the {p} and {B} walks {m} km more than {A}. How many km do they walk altogether in {k} days?",
    "The sum of two numbers is {n} and their product is {m}. Find the sum of their cubes plus {k}.",
    "A train leaves the {p} at {n} km/h and another follows {k} hours later at {m} km/h. After how long does it catch up?",
    "In a class there are {n} students. {m} of them like {t} and {k} like both {t} and music. How many students like {t} but not music?",
    "Compute $\\frac{{{n}}}{{{m}}} + \\frac{{{k}}}{{{n}}}$ and give the result as a fraction.",
    "Let $f(x) = {n}x^2 + {m}x - {k}$. Determine the largest value of $x$ for which $f(x) = 0$.",
    "The radius of a circle is {n} cm. A chord of length {m} cm lies {k} cm from the center. What area does it cut off?",
    "{A} has {n} {t} and {B} has {m} {t}. They put them together and split them fairly among {k} friends. How many {t} does every friend get?",
    "How many positive integers less than {n} are divisible by {m} but leave an odd quotient when divided by {k}?",
    "A tank is filled by one pipe in {n} hours and emptied by another in {m} hours. How full is it after {k} hours?",
    "If ${n}x + {m}y = {k}$ and $x - y = {m}$, what is the value of $x$?",
    "A jacket at the {p} costs ${n}. The price goes up by {m}\\% and then falls by {k}\\%. What is the final price?",
]  # fmt: skip
SUBJECTS = "gardener pilot teacher baker painter sailor nurse carpenter tailor miner clerk chemist runner dancer farmer singer cook hunter driver banker".split()
VERBS = "collects packs arranges counts repairs carries loads sorts paints delivers weighs measures borrows hides wraps labels unpacks trades stacks polishes".split()
ADJECTIVES = "wooden tiny heavy broken shiny old striped round narrow plastic copper folded fragile sturdy dusty crooked".split()
OBJECTS = "barrels lamps bricks bottles clocks drums planks chairs baskets wheels bells tents helmets ladders parcels violins kettles anchors carpets statues".split()
WHEN = "every morning,during a storm,before the feast,after lunch,on a cold day,near the river,with great care,in the old mill,at the fair,by moonlight,for the mayor,beside the road".split(
    ","
)
EXPRESSIONS = [
    lambda r: f"$x^{{{r(2, 9)}}} - {r(2, 99)}x + {r(1, 999)} = 0$",
    lambda r: f"$\\frac{{{r(1, 99)}}}{{{r(2, 99)}}} \\cdot \\sqrt{{{r(2, 999)}}}$",
    lambda r: f"$\\sum_{{i={r(0, 9)}}}^{{{r(10, 99)}}} i^{r(2, 5)}$",
    lambda r: f"$\\left( {r(1, 99)} + {r(1, 99)}\\sqrt{{{r(2, 50)}}} \\right)^{r(2, 6)}$",
    lambda r: f"$\\log_{{{r(2, 9)}}} {r(10, 9999)}$",
    lambda r: f"$\\binom{{{r(10, 60)}}}{{{r(2, 9)}}} \\le {r(1000, 99999)}$",
]


@dataclass(slots=True)
class Row:
    """``truth`` is the number of the problem that it is, ``kind`` how it was made."""

    text: str
    truth: int
    kind: str
    templated: bool


def templated(draw: random.Random) -> str:
    a, b = draw.sample(NAMES, 2)
    frame = draw.choice(FRAMES)
    n, m, k = (draw.randint(2, 60) for _ in range(3))
    return frame.format(A=a, B=b, t=draw.choice(THINGS), p=draw.choice(PLACES), n=n, m=m, k=k)


def diverse(draw: random.Random) -> str:
    """Sentences of words drawn one by one, and a formula in most."""
    r = draw.randint
    sentences = []
    for _ in range(r(1, 3)):
        sentences.append(
            f"A {draw.choice(ADJECTIVES)} {draw.choice(SUBJECTS)} {draw.choice(VERBS)} "
            f"{r(2, 400)} {draw.choice(ADJECTIVES)} {draw.choice(OBJECTS)} {draw.choice(WHEN)}."
        )
    if draw.random() < 0.6:
        sentences.append(
            f"The {draw.choice(SUBJECTS)} then solves {draw.choice(EXPRESSIONS)(r)} {draw.choice(WHEN)}."
        )
    sentences.append(
        f"How many {draw.choice(OBJECTS)} does the {draw.choice(SUBJECTS)} need for {r(2, 90)} {draw.choice(ADJECTIVES)} {draw.choice(OBJECTS)}?"
    )
    return " ".join(sentences)


# Copies that say the same.


def reformatted(text: str, draw: random.Random) -> str:
    """The same text, set another way."""
    swaps: list[tuple[str, str]] = [
        ("\\frac", "\\dfrac"), ("\\frac", "\\tfrac"), ("\\le ", "\\leq "), ("\\left( ", "("),
        (" \\right)", ")"), (" + ", "+"), (" = ", "="), ("\\cdot", "\\cdot\\,"), (" km", "\\,km"),
        ("\\%", "%"), ("^2", "^{2}"), (" - ", " − "), (". ", ".\n"), ("? ", "?  "),
        (" cm", "~cm"), ("x^2", "x²"),
    ]  # fmt: skip
    for old, new in draw.sample(swaps, 9):
        text = text.replace(old, new)
    if "$" in text and text.count("$") % 2 == 0 and draw.random() < 0.5:
        parts = text.split("$")
        opening, closing = draw.choice([("\\(", "\\)"), ("$$", "$$"), ("$ ", " $")])
        text = "".join(p if i % 2 == 0 else f"{opening}{p}{closing}" for i, p in enumerate(parts))
    if draw.random() < 0.3:
        text = text.rstrip(".?")
    if draw.random() < 0.3:
        text = re.sub(r"\b(\w+) (km|cm|hours)\b", r"\1 \\text{\2}", text, count=1)
    if draw.random() < 0.3:
        text = "".join(chr(ord(c) + 0xFEE0) if c in "0123456789" else c for c in text)
    return "  ".join(text.split(" ")) if draw.random() < 0.5 else text


def _slip(word: str, draw: random.Random) -> str:
    i = draw.randrange(len(word) - 1)
    kind = draw.randrange(4)
    letter = draw.choice("abcdefghijklmnoprstuvwy")
    if kind == 0:
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    if kind == 1:
        return word[:i] + word[i + 1 :]
    if kind == 2:
        return word[:i] + letter + word[i:]
    return word[:i] + letter + word[i + 1 :]


def misspelt(text: str, draw: random.Random) -> str:
    """One or two words with a letter lost, added, changed, or exchanged with the next."""
    words = text.split(" ")
    places = [i for i, w in enumerate(words) if len(w) >= 5 and w.isalpha() and w.islower()]
    for i in draw.sample(places, min(len(places), draw.randint(1, 2))):
        words[i] = _slip(words[i], draw)
    return " ".join(words)


SYNONYMS = {
    "buys": "picks up", "boxes": "cartons", "holds": "contains", "hands": "passes",
    "stores": "keeps", "crates": "containers", "walks": "strolls", "leaves": "departs",
    "catch": "overtake", "students": "pupils", "class": "classroom", "like": "enjoy",
    "friends": "pals", "split": "share", "tank": "reservoir", "filled": "topped up",
    "emptied": "drained", "jacket": "coat", "falls": "sinks", "goes": "moves",
    "collects": "gathers", "arranges": "organises", "repairs": "mends", "carries": "hauls",
    "tiny": "minuscule", "heavy": "weighty", "broken": "damaged", "shiny": "gleaming",
    "gardener": "horticulturist", "teacher": "instructor", "sailor": "mariner",
    "parcels": "packages", "carpets": "rugs", "storm": "tempest", "feast": "banquet",
    "needs": "requires", "need": "require", "farmer": "grower", "lies": "sits", "still": "yet",
    "get": "receive", "hides": "conceals", "wraps": "envelops", "measures": "gauges",
    "road": "street", "bricks": "blocks", "chairs": "seats", "old": "aged", "fair": "carnival",
    "music": "songs", "value": "figure", "result": "outcome",
}  # fmt: skip


def synonyms(text: str, draw: random.Random) -> str:
    """One or two words for others of the same meaning, everywhere they occur."""
    words = [w for w in SYNONYMS if re.search(rf"\b{w}\b", text)]
    for word in draw.sample(words, min(len(words), draw.randint(1, 2))):
        text = re.sub(rf"\b{word}\b", SYNONYMS[word], text)
    return text


def reordered(text: str, draw: random.Random) -> str:
    """A sentence without numbers moved, or one added that says nothing."""
    idle = draw.choice([
        "The weather is pleasant.", "It is a busy week at the place.", "Everyone is in good spirits.",
        "Nobody is in a hurry.", "This happens quite often.",
    ])  # fmt: skip
    sentences = re.split(r"(?<=[.?]) ", text)
    sentences.insert(draw.randrange(len(sentences)), idle)
    free = [i for i, s in enumerate(sentences) if not re.search(r"\d", s)]
    i = draw.choice(free)
    moved = sentences.pop(i)
    sentences.insert(draw.randrange(len(sentences) + 1), moved)
    return " ".join(sentences)


def reframed(text: str, draw: random.Random) -> str:
    """The question put another way."""
    frames: list[tuple[str, str]] = [
        ("how many", "what is the number of"), ("How many", "Find how many"),
        ("What is", "Determine"), ("Find", "Work out"), ("Compute", "Evaluate"),
        ("Determine", "State"), ("what is the value of", "find"), ("If ", "Suppose "),
        ("Let ", "Consider "), ("How full", "Say how full"), ("After how long", "State after how long"),
        ("A ", "There is a "),
    ]  # fmt: skip
    fitting = [f for f in frames if f[0] in text]
    for old, new in draw.sample(fitting, min(2, len(fitting))):
        text = text.replace(old, new, 1)
    return text


NOTES = [
    "Please show all of your work.", "Explain your reasoning step by step.",
    "Put your final answer inside \\boxed{}.", "Think carefully before you answer.",
    "Give only the final answer.", "Write down each step of the solution.",
    "Answer the question below.", "You are a helpful math tutor. Solve this problem.",
    "Let's work through this one step at a time.", "Provide a detailed solution.",
]  # fmt: skip


def noted(text: str, draw: random.Random) -> str:
    note = draw.choice(NOTES)
    if draw.random() < 0.4:
        return f"{draw.choice(['Problem:', 'Question:', note])} {text}"
    return f"{text} {note}"


# Traps: other problems.


def other_number(text: str, draw: random.Random) -> str:
    number = draw.choice(list(re.finditer(r"\d+", text)))
    value = int(number.group()) + draw.choice([-1, 1, 2, 3, 5, 10])
    return text[: number.start()] + str(max(2, value)) + text[number.end() :]


TURNS = [
    ("sum", "difference"), ("more than", "less than"), ("largest", "smallest"), ("odd", "even"),
    ("plus", "minus"), ("product", "quotient"), ("less than", "greater than"), ("radius", "diameter"),
    ("but not", "and also"), ("both", "neither"), ("goes up", "goes down"), (" + ", " - "),
    (" - ", " + "), ("positive", "negative"), ("later", "earlier"), ("\\le", "\\ge"),
    ("x^", "y^"), ("need", "not need"), ("squares", "cubes"), ("cubes", "squares"),
    ("\\cdot", "+"), ("\\sum", "\\prod"), ("area", "perimeter"),
    ("divisible by", "prime to"),
]  # fmt: skip


def other_operator(text: str, draw: random.Random) -> str | None:
    """One word or sign turned, where it stands by itself."""
    fitting = []
    for old, new in TURNS:
        found = re.search(rf"(?<![A-Za-z]){re.escape(old)}(?![A-Za-z])", text)
        if found:
            fitting.append((found, new))
    if not fitting:
        return None
    found, new = draw.choice(fitting)
    return text[: found.start()] + new + text[found.end() :]


def other_order(text: str, draw: random.Random) -> str | None:
    """Two numbers, or two names, exchanged."""
    kind = draw.choice([r"\d+", "|".join(NAMES)])
    found = list(dict.fromkeys(re.findall(rf"\b(?:{kind})\b", text)))
    if len(found) < 2:
        return None
    a, b = draw.sample(found, 2)
    spots = list(re.finditer(rf"\b(?:{a}|{b})\b", text))
    if a.isalpha():  # only one of their places, or the text is the same with other names
        spots = draw.sample(spots, 2) if len(spots) > 2 else []
        if len({s.group() for s in spots}) < 2:
            return None
    for spot in sorted(spots, key=lambda s: -s.start()):
        other = b if spot.group() == a else a
        text = text[: spot.start()] + other + text[spot.end() :]
    return text


COPIES: dict[str, Callable[[str, random.Random], str]] = {
    "verbatim": lambda text, _: text,
    "reformatted": reformatted,
    "misspelt": misspelt,
    "synonyms": synonyms,
    "reordered": reordered,
    "reframed": reframed,
    "noted": noted,
}
TRAPS: dict[str, Callable[[str, random.Random], str | None]] = {
    "other number": other_number,
    "other operator": other_operator,
    "other order": other_order,
}


def corpus(count: int, seed: int) -> list[Row]:
    """``count`` rows, 60 % of them problems of their own, the rest copies and traps of those."""
    draw = random.Random(seed)
    rows: list[Row] = []
    seen: set[str] = set()

    def new(text: str | None, kind: str, from_template: bool) -> None:
        if text is not None and text not in seen:
            seen.add(text)
            rows.append(Row(text, len(rows), kind, from_template))

    originals = count * 6 // 10
    while len(rows) < originals:
        half = len(rows) % 2 == 0
        new(templated(draw) if half else diverse(draw), "original", half)
    makers = [*COPIES, *TRAPS]
    while len(rows) < count:
        source = rows[draw.randrange(originals)]
        kind = makers[len(rows) % len(makers)]
        if kind in TRAPS:
            new(TRAPS[kind](source.text, draw), kind, source.templated)
            continue
        text = COPIES[kind](source.text, draw)
        if kind == "verbatim" or text != source.text:
            rows.append(Row(text, source.truth, kind, source.templated))
    draw.shuffle(rows)
    return rows
