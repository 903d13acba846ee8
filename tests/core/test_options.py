from __future__ import annotations

import pytest

from llmpipe.core.errors import UserError
from llmpipe.core.options import parse_options, read_seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-1", -1),
        ("0.5", 0.5),
        ("true", True),
        ("False", False),
        ("None", None),
        ("bfloat16", "bfloat16"),
        ('{"a": [1]}', {"a": [1]}),
        ("/models/a b", "/models/a b"),
        ("", ""),
    ],
)
def test_values_are_read_as_json_else_as_text(text: str, value: object) -> None:
    parsed = parse_options({"key": text}, {"key"}, "it")["key"]
    assert parsed == value
    assert type(parsed) is type(value)


def test_an_unknown_name_lists_near_ones_or_all() -> None:
    with pytest.raises(UserError, match="it has no option 'colour'") as caught:
        parse_options({"colour": "1"}, {"color", "size"}, "it")
    assert caught.value.hint == "near names: color"
    with pytest.raises(UserError) as caught:
        parse_options({"zzz": "1"}, {"size", "color"}, "it")
    assert caught.value.hint == "it has color, size"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7200),
        ("90m", 5400),
        ("30s", 30),
        ("1h30m", 5400),
        ("1H 30M", None),
        ("45", 45),
        ("0.5", 0.5),
        ("1h5", 3605),
        ("h", None),
        ("", None),
        ("-5", None),
        ("2 days", None),
        ("30m1h", None),
    ],
)
def test_times(text: str, seconds: float | None) -> None:
    assert read_seconds(text) == seconds
