from __future__ import annotations

import pytest

from llmpipe.core.errors import UserError
from llmpipe.core.options import parse_options


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
