"""Rules on problems whose answer is a text: a proof, an explanation, a drawing, an example."""

from __future__ import annotations

import re

from llmpipe.algo.rules.answers import is_value
from llmpipe.algo.rules.statement import EDGE, QUESTION, START, Statement, asks, excerpt

# Who says these before "prove" orders nothing.
_NO_ORDER = (
    "not", "never", "cannot", "without", "they", "we", "will", "would", "might", "may", "not to",
    "not need to", "n't need to", "not have to", "n't have to", "having to",
)  # fmt: skip
_ORDERED = "".join(f"(?<!{words} )" for words in _NO_ORDER)

PROVE = (
    rf"{_ORDERED}(?<![\\-])\b(?:dis)?prove\b"
    r"(?! (?:to be|h(?:im|er|is)|them\w*|costly|fatal|useful|your (?:answer|claim)))"
    rf"|{START}(?:show|demonstrate|verify|establish|justify|argue)"
    r"(?:,?\s+(?:(?:using|by|via|with)\b[^.?!;:]{1,60}?|[a-z]+ly\b)(?=,?\s+that\b))?"
    r"(?:\s?[:：]|,?\s+(?:that|¤|if\b|for (?:all|any|every|each)\b|(?:it|this|why)\b"
    r"|there (?:is|are|exist)|the (?:following|identit|inequalit|equalit|equivalence|claim"
    r"|statement|result|theorem|relation|law|existence|uniqueness|correctness|convergence"
    r"|formula)))"
    rf"|{START}(?<!to )(?<!you )(?:deduce|conclude|check|confirm|derive|infer)\s+that\b"
    r"|\b(?:give|write|provide|present|supply|sketch|construct|complete|find|offer)\s+(?:down )?"
    r"(?:an?|the|another|your|two|different)\b[^.?!]{0,40}\bproofs?\b"
    r"|\bjustify\b[^.?!;]{0,40}\b(?:with|by|using) (?:an? )?(?:\w+ )?proof\b"
    rf"|{_ORDERED}\bprove (?:that )?your (?:answer|claim|result|conclusion|list) (?:is|are)\b"
    r"|(?<![已被经份住入可能无需须用必的来去])(?<![经向].)(?<![经向]..)(?:求证|(?:试|请)?证明|试证|论证)"
    r"(?![书件人了过后者力信]|材料|文件|\s*[\d一二两三四五六七八九十几]+\s*[份张页本])"
)
"""An order to prove, in lower-case words; a mention ("a proven prime", "records show") is none."""

_PROVE = re.compile(PROVE)
# Nothing else can be meant: 求证 is an order by itself, and a proof of the answer is no answer.
_PROVE_ONLY = re.compile(
    r"求证|试证|证明\s*[:：]|^prove (?:that )?your\b|^justify\b.*\bproof\b", re.DOTALL
)
_COMPUTE = re.compile(r"求(?!证)|计算|化简|解方程|多少")
_PROOFISH = (
    "prove", "show", "demonstrate", "verify", "establish", "justify", "argue", "deduce", "conclude",
    "check", "confirm", "derive", "infer", "proof", "证",
)  # fmt: skip
_AND_ASK = re.compile(
    r"(?:\b(?:and|then|hence|also)|[;,])[ ,]+(?:also |then |hence |thus |to )?"
    r"(?:find|determine|compute|calculate|evaluate|express|solve|simplify|state|what|how many"
    r"|give (?:the|its|a formula))\b"
    r"|[并再,，；;]\s*(?:求(?!证)|计算|写出|确定|判断)"
)
_ANSWERED = re.compile(r"\bshow that (?:it|the answer|this) is\b")
_CLAIM = 6  # words
_RESTATED = 6  # so many characters of an answer are no chance find in the prompt


def proof(statement: Statement) -> str | None:
    """It is to be proved, and asks for nothing else that its gold could be.

    "Show that ... and find the value" stays where there is a value: the proof is on the way.
    """
    words = statement.words
    found = _PROVE.search(words) if statement.mentions(_PROOFISH) else None
    if found is None:
        claims = not statement.has_answer and len(words.split()) >= _CLAIM and not asks(words)
        return "it states a claim and asks nothing" if claims else None
    if _PROVE_ONLY.search(found[0].strip() + words[found.end() : found.end() + 1]) and not (
        _COMPUTE.search(words)
    ):
        return excerpt(words, found)
    if statement.has_answer and not _ANSWERED.search(words) and not _restates(statement):
        for sentence in statement.sentences:
            order = _PROVE.search(sentence)
            if order is None:
                if asks(sentence):
                    return None
            elif (
                asks(sentence[: order.end() - len(order[0].lstrip(EDGE))])
                or _AND_ASK.search(sentence, order.end())
                or (order[0].strip().startswith("to ") and sentence.rstrip().endswith("?"))
            ):
                return None
    return excerpt(words, found)


def _restates(statement: Statement) -> bool:
    """Whether the gold is what was to be proved, word for word."""
    answer = "".join(statement.answer.replace("$", "").split()).rstrip(".")
    return len(answer) >= _RESTATED and answer in "".join(statement.prompt.replace("$", "").split())


TELL = (
    rf"{START}(?:briefly |clearly |fully )?(?:explain|describe|discuss|interpret|comment on"
    r"|compare and contrast|illustrate|elaborate|summari[sz]e|critique|reflect on|outline|defend"
    r"|define)\b(?! (?:the variable|¤ (?:to be|as|by)))"
    rf"|{START}(?:sketch|draw|plot|graph|design|invent|make up|brainstorm|conjecture|propose)(?=\s)"
    rf"|{START}(?:give|provide|construct|find|write|make|list)\s+(?:me )?(?:an?|two|three|some"
    r"|your own|another)(?: \w+)? (?:examples?|counter-?examples?|essay|paragraph|story|explanation"
    r"|word problem|description|definition|summary)\b"
    r"|\b(?:in your own words|what do you (?:notice|think|observe|conclude)|do you agree"
    r"|what is meant by|answers (?:will|may) vary|open[- ]ended"
    r"|what does [^.?]{3,60} (?:mean|represent|tell (?:you|us))\b)"
    r"|(?:^|[\n.!?] ?)(?:why|how (?:do|does|can|would|could|might)"
    r" (?:you|one|we|this|these|the|it))\b[^?]*\?"
    r"|(?:请|试|并)?(?:解释|简述|论述|叙述|描述|谈谈|说说|阐述)|为什么|举例说明|举[出一]|开放[题性]"
    r"|答案不唯一|写出一个|画出|说明理由|说明原因|什么叫|什么是"
)
"""An order for words, a drawing or an example."""

_TELL = re.compile(TELL)
_TELLING = (
    "expla", "descri", "discuss", "interpret", "comment", "compare", "illustrat", "elaborat",
    "summar", "critique", "reflect", "outline", "define", "defend", "sketch", "draw", "plot",
    "graph", "design", "invent", "make up", "brainstorm", "conjecture", "propose", "example",
    "essay", "story", "word problem", "own words", "do you", "meant by", "vary", "open",
    "what does", "why", "how do", "how can", "how would", "how could", "how might", "解释",
    "简述", "论述", "叙述", "描述", "谈谈", "说说", "阐述", "为什么", "举", "开放", "不唯一",
    "写出一个", "画出", "说明", "什么叫", "什么是",
)  # fmt: skip
_THEN_ASKS = re.compile(rf"[:,;，：；]\s*(?:and |then |so )?(?:{QUESTION})(?<![?？])")
_ONLY_IF = re.compile(r"\b(?:if|otherwise|whether)\b[^.]*$")
_ANY_WILL_DO = re.compile(
    r"answers? (?:will|may|can|could) vary|open[- ]ended|sample answer|答案不唯一", re.IGNORECASE
)


def open_ended(statement: Statement) -> str | None:
    """It wants words, a drawing or any one example, and asks for nothing that can be compared.

    "Explain your answer" beside a question with a value stays, and so does "describe all ..."
    where the gold is a formula.
    """
    if any_will_do := _ANY_WILL_DO.search(statement.answer):
        return f"the answer: {any_will_do[0]}"
    if not statement.mentions(_TELLING):
        return None
    words = statement.words
    found = _TELL.search(words)
    if found is None:
        return None
    beside = any(asks(s) for s in statement.sentences if not _TELL.search(s))
    if statement.has_answer and beside:  # the answer's own rules decide
        return None
    if statement.has_answer and is_value(statement.answer):
        start = re.split(r"[.?!;\n。？！；]", words[: found.start() + 1])[-1]
        order = found[0].strip(" \n.,;:¤")
        if (
            order.startswith(("describe", "how", "find", "graph", "写出一个"))
            or _ONLY_IF.search(start)
            or asks(start)
            or _AND_ASK.search(words, found.end())
            or _THEN_ASKS.search(words, found.end())
        ):
            return None
    return excerpt(words, found)
