"""Mathematical problems with one final answer."""

from __future__ import annotations

from collections.abc import Sequence

from llmpipe.core.records import FinishReason, Message, Problem, Score

_SHORT = 60  # characters of an answer that is worth saying again


class MathTask:
    """Judged by `llmpipe.verifiers.math`; the payload is not used."""

    name = "math"
    one_answer = True
    prose = True
    instruction = "Reason step by step, and put your final answer in \\boxed{}."

    def normal_form(self, problem: Problem) -> str:
        from llmpipe.algo.normal import normal_form

        return normal_form(problem.prompt)

    def malformed(self, problem: Problem) -> str | None:
        return None if problem.prompt.strip() else "the prompt is empty"

    def unreadable(self, answer: str) -> str | None:
        from llmpipe.verifiers.math import unreadable

        return unreadable(answer)

    def judge(
        self,
        answer: str,
        payload: str,
        response: str,
        *,
        finish_reason: FinishReason,
        extract: str,
        rules: str = "strict",
    ) -> Score:
        from llmpipe.verifiers.math import verify_math

        return verify_math(answer, response, extract=extract, finish_reason=finish_reason)

    def reply(self, problem: Problem, messages: Sequence[Message], score: Score) -> str | None:
        """That it is wrong, and which answer was read; never ``score.detail``: it quotes the gold
        answer."""
        if score.status == "wrong":
            said = score.extracted or ""
            read = said if 0 < len(said) <= _SHORT and "\n" not in said else "That"
            return f"{read} is not right. Look for the step that went wrong, and solve it again."
        if score.status == "no_answer":
            return f"No final answer can be read from that. {self.instruction}"
        return None


TASK = MathTask()
