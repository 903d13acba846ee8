from __future__ import annotations

import pytest

from llmpipe.core.surrogates import has_half, without_halves


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("", ""),
        ("a é \U0001f600", "a é \U0001f600"),
        ("a\ud800b\udc00", "a\ufffdb\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
    ],
)
def test_halves_are_joined_or_replaced(text: str, mended: str) -> None:
    assert without_halves(text) == mended
    assert has_half(text) == (text != mended)
    mended.encode()
