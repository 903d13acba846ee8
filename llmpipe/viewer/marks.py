"""Where in a response its answer stands, as the verifier read it."""

from __future__ import annotations

from llmpipe.algo.extract import after_thinking, find_boxes, last_tag


def answer_span(response: str, extracted: str | None) -> tuple[int, int] | None:
    """Start and end of the extracted answer in the response; None where it doesn't stand as it is.

    It is looked for after the thinking: in the last box that has it, else in its last place, else
    the whole content of the last box or tag, of which it was read.
    """
    if not extracted:
        return None
    after = after_thinking(response)
    base = response.rfind(after) if after else -1
    if base < 0:
        return None
    box = after.rfind("{" + extracted + "}")
    if box >= 0:
        return base + box + 1, base + box + 1 + len(extracted)
    for words in (extracted, find_boxes(after).last, last_tag(after)):
        place = after.rfind(words) if words else -1
        if words and place >= 0:
            return base + place, base + place + len(words)
    return None


def thinking(response: str) -> int:
    """How many characters of the response are its thinking, at its beginning."""
    after = after_thinking(response)
    return len(response) - len(after) if response.endswith(after) else 0
