"""Mathematical problems with one final answer."""

from __future__ import annotations

from llmpipe.core.records import FinishReason, Problem, Score


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


TASK = MathTask()
