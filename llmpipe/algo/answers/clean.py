r"""An answer without what changes only its looks.

Unicode signs become LaTeX, sizes and spacing go, `\text{}` stays (its words may be a unit), other
wrappers fall away. The result is one line that `lexer` reads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from llmpipe.algo.answers.clock import with_times
from llmpipe.algo.answers.written_units import with_currency, with_units
from llmpipe.algo.extract import find_boxes

_SIGNS = str.maketrans({
    "−": "-", "–": "-", "—": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∗": "*",
    "÷": r"\div ", "±": r"\pm ", "∓": r"\mp ", "≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ",
    "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ",
    "∈": r"\in ", "∅": r"\emptyset ", "√": r"\sqrt ", "π": r"\pi ", "°": r"\degree ",
    "′": "'", "″": "''", "’": "'", "‘": "'", "“": '"', "”": '"', "％": "%", "（": "(", "）": ")",
    "，": ", ", "、": ", ", "；": "; ", "：": ":", "。": ".", "＞": ">", "＜": "<", "＝": "=",
    "∶": ":", "．": ".", "＋": "+",
    "｜": "|", "∣": "|", "或": " or ", "和": " and ", "ℝ": r"\mathbb{R}",
    "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}",
    "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "θ": r"\theta ",
    "λ": r"\lambda ", "μ": r"\mu ", "σ": r"\sigma ", "φ": r"\phi ", "ω": r"\omega ",
    "ρ": r"\rho ", "Δ": r"\Delta ", "\u00a0": " ", "\u2009": " ", "\u202f": " ",
    "\u200b": None, "\x0c": " ", "µ": r"\mu ", "℃": r"\degree C ", "℉": r"\degree F ",
    "㎡": r"\text{m}^{2} ", "㎥": r"\text{m}^{3} ", "㎝": r"\text{cm} ", "㎜": r"\text{mm} ",
    "㎞": r"\text{km} ", "㎏": r"\text{kg} ",
})  # fmt: skip
_SQUARE_UNITS = re.compile("(?<=\\d) ?([kcdm]?m|ft|in|yd|mi)(?=[²³])")
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+")
_SUBSCRIPTS = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_VULGAR = re.compile("[¼-¾⅐-⅞]")

_OPEN_BOX = re.compile(r"^\\+(?:boxed|fbox)\s*\{")
_DELIMITED = re.compile(r"\$\$(.*)\$\$|\$([^$]*)\$|\\\((.*)\\\)|\\\[(.*)\\\]", re.DOTALL)


def _scale(match: re.Match[str]) -> str:
    """Of degrees that are no angle."""
    name = "degC" if match[1] else "degF"
    return f"\\text{{{name}}}" if match.group().startswith("\\") else name


_RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"<su([bp])>([^<]{1,40})</su[bp]>", r"^\1{\2}"),
        (r"\\(?:textcolor|colorbox)\s*\{[^{}]*\}(?=\s*\{)|\\color\s*\{[^{}]*\}", ""),
        (r"(\\\\)\s*\[-?\d+(?:\.\d+)?\s*(?:pt|em|ex|mm|cm)\]", r"\1 "),
        (r"\{ ?: ?\}", ":"),
        (r"\^b\{", "_{"),
        (r"\^p\{", "^{"),
        (r"(?<!\\)\\!\s*|\\?\$|€|£|¥", ""),
        (r"(?<!\\)\\[()\[\]](?!\d*(?:pt|em|ex))", " "),
        (r"\\(?:display|text|script)style(?![A-Za-z])|\\(?:no)?limits(?![A-Za-z])", ""),
        (r"\\[bB]igg?[lrm]?(?![A-Za-z])|\\(?:m?left|m?right|middle)(?:\.|(?![A-Za-z]))", ""),
        (r"(\d)(?:\\[,;: ]| ?\{ ?, ?\}|\{ \}|~)(?=\d{3}(?!\d))", r"\1"),
        (r"(?<!\\)\\[,;: ]|\\q?quad(?![A-Za-z])|\\(?:thin|med|thick)space|~", " "),
        (r"\\hspace\{[^{}]*\}", " "),
        (r"\{ ?, ?\}", ","),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\[dt]binom(?![A-Za-z])", r"\\binom"),
        (r"\\(?:text(?:bf|it|rm|sf|tt|normal|sc)|mbox|hbox)(?![A-Za-z])", r"\\text"),
        (r"\\(?:mathrm|mathbf|mathit|mathsf|mathtt|mathop|mathcal|operatorname|rm|bf|bm|boldsymbol)\*?"
         r"(?![A-Za-z])\s*\{([A-Za-z ]{2,}[^{}]*|[A-Za-z] ?/ ?[A-Za-z][^{}]*)\}", r"\\text{\1}"),
        (r"\\mathrm\s*\{\s*([A-Zabcf-hj-z])\s*\}", r"\\text{\1}"),
        (r"\\(?:mathrm|mathbf|mathit|mathsf|mathtt|mathop|mathcal|operatorname|bm|boldsymbol)\*?"
         r"(?![A-Za-z])", ""),
        (r"\\(?:vec|overrightarrow|hat|widehat|tilde|underline|cancel)(?![A-Za-z])", ""),
        (r"^\s*(?:\\text\s*\{\s*(?:only|exactly|just|about|approximately)\s*\}"
         r"|(?:only|exactly|just|about|approximately)\b|\\approx(?![A-Za-z]))\s*(?=\S)", ""),
        (r"^([^,;]*\.\d+)\s*(?:\\[lc]?dots|\.\.\.|…)\s*$", r"\1"),
        (r"([,;])\s*(?:\.\.\.|…)", r"\1\\ldots "),
        (r"^\s*\{(\s*[A-Za-z]\s*(?:\||\\mid\b|:).*)\}\s*$", r"\\{\1\\}"),
        (r"\\text\s*\{\s*\}", ""),
        (r"(?<=\d)\s*\^\s*(?:\{\s*(?:\\text\s*\{\s*(?:st|nd|rd|th)\s*\}|(?:st|nd|rd|th))\s*\}"
         r"|\\text\s*\{\s*(?:st|nd|rd|th)\s*\})", ""),
        (r"(?<!\\)\b[dD]egrees?\s+(?:(Celsius|centigrade|C)|Fahrenheit|F)\b(?!\s*=)", _scale),
        (r"(?:\^\s*\{\s*\\(?:circ|degree)\s*\}|\^\s*\\circ(?![A-Za-z])|\\text\{\s*degrees?\s*\}"
         r"|(?<!\\)\bdegrees?\b)", r"\\degree "),
        (r"\\degree\s*(?:\\text\s*\{\s*)?(?:(Celsius|C)|Fahrenheit|F)\b(?:\s*\})?", _scale),
        (r"\\text\{\s*(?:percent(?:age)?|per cent|pct)\.?\s*\}", "%"),
        (r"\b(?:percent(?:age)?|per cent|pct)\b", "%"),
        (r"\b(sq|cu|in|ft|hr|hrs|min|sec|lb|lbs|oz|yd|approx)\.(?=\s|\}|$)", r"\1"),
        (r"\b(sq|cu)\.(?=[a-z])", r"\1 "),
        (r"\\%", "%"),
        (r"\\pmod\s*(?:\{(\w+)\}|(\w))|\(\s*(?:\\mod|\\text\{\s*mod\s*\}|mod)\s*(\w+)\s*\)",
         r"\\mod \1\2\3"),
        (r"\b(?:infinity|Infinity|infty)\b(?<!\\infty)", r"\\infty "),
        (r"\s+", " "),
    )
)  # fmt: skip
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z{}])")
_REPEATING = re.compile(
    r"(?<![\d.])(\d*)\.(\d*)(?:\\overline\s*\{(\d+)\}|\\bar\s*\{?(\d+)\}?|\((\d+)\)"
    r"|\\dot\s*\{?(\d)\}?(?:(\d*)\\dot\s*\{?(\d)\}?)?)"
)
_LONGEST_PERIOD = 1000  # digits
_PLAIN_FIGURE = re.compile(r"-?\d+(?:\.\d+)?(?:/\d+)?")
_TAIL = " .,;:\\"


def clean(text: str) -> str:
    """An answer on one line without boxes, dollars, spacing, sizes, idle wrappers, a full stop."""
    text = (find_boxes(text).answer or text).strip()
    text = _OPEN_BOX.sub("", text)
    if text.startswith("**") and text.endswith("**"):
        text = text[2:-2].strip()
    if delimited := _DELIMITED.fullmatch(text):
        text = next(g for g in delimited.groups() if g is not None)
    if not text.isascii():
        text = _plain_letters(text)
    if r"\\begin" in text or r"\\left" in text:  # escaped twice, the ends of rows too
        text = text.replace("\\\\", "\\")
    elif "begin{" not in text:
        text = _DOUBLED.sub(r"\\", text)
    if _PLAIN_FIGURE.fullmatch(text):
        return text
    text = with_currency(text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    if "." in text:
        text = _REPEATING.sub(_repeating, text)
    text = with_units(with_times(text))
    return text.rstrip(_TAIL).lstrip(" :")


def _plain_letters(text: str) -> str:
    text = _SQUARE_UNITS.sub(r"\\text{\1}", text)
    text = _SUPERSCRIPTS.sub(lambda m: f"^{{{_digits(m.group())}}}", text)
    text = _SUBSCRIPTS.sub(lambda m: f"_{{{_digits(m.group())}}}", text)
    text = _VULGAR.sub(lambda m: f" {_digits(m.group()).replace('⁄', '/')} ", text)
    return text.translate(_SIGNS)


def _digits(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("−", "-")


def _repeating(match: re.Match[str]) -> str:
    r"""0.1\overline{6} as the fraction (15/90)."""
    whole, fixed, *rest = match.groups()
    period = next((p for p in rest[:3] if p), None)
    if period is None:
        first, middle, last = rest[3], rest[4] or "", rest[5] or ""
        period = first + middle + last
    if len(whole) + len(fixed) + len(period) > _LONGEST_PERIOD:
        return match.group()
    digits = int(f"{whole}{fixed}{period}" or 0) - int(f"{whole}{fixed}" or 0)
    return f"({digits}/{'9' * len(period)}{'0' * len(fixed)})"
