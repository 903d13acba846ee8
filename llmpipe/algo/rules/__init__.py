"""Rules by name that say why a mathematical problem is no use to a rule-based verifier.

Each is a pure function of a `Statement` (prompt and gold answer) that returns what it found, or
None. They look for words and marks in English and Chinese; a mention is not a match ("a proven
theorem", the interval "(1, 2)", "which of the following" without a list).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from llmpipe.algo.rules.answers import answer_empty, answer_impossible, answer_prose
from llmpipe.algo.rules.choice import multiple_choice, multiple_choice_value, without_options
from llmpipe.algo.rules.figure import needs_figure
from llmpipe.algo.rules.parts import multi_question
from llmpipe.algo.rules.prose import open_ended, proof
from llmpipe.algo.rules.statement import Statement

__all__ = ["RULES", "Rule", "Statement", "without_options"]

Rule = Callable[[Statement], str | None]

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        rule.__name__: rule
        for rule in (
            multiple_choice,
            multiple_choice_value,
            proof,
            multi_question,
            open_ended,
            needs_figure,
            answer_empty,
            answer_impossible,
            answer_prose,
        )
    }
)
"""In the order they are asked: what says most of a problem comes first."""
