"""Chinese words about a value: those that negate, bound or scale it, and what it may count."""

from __future__ import annotations

import re

_DENIAL = re.compile("[不非无没未否若]|如果|假设|假如|是否|除了|除非|而是|错")
_BEFORE = re.compile(
    "(?:[负減减加乘除第模过于足近半点之被十百千万亿和与或到至的前后每超]|[除乘]以|根号|至少|至多|最多|最少"
    "|绝对值|相反数|倒数|对数|倍|接近|几乎|将近|低于|高于)$"
)
_HARMLESS = re.compile(
    "(?:等于|相当于|属于|至此|达到|得到|求得|找到|算到|减少到|增加到|共和|之和|总和|的和|为正|结果的|的是|位于"
    "|在于)$"
)
_MEASURE = re.compile(
    "[ ]*(?:平方(?:[米里尺寸]|[千厘毫分公][米里])|立方(?:[米尺寸]|[千厘毫分][米])"
    "|千[米克瓦卡]|百米|公[里斤顷亩分]|毫[米克升]|厘米|分[米钟]|小[时朋]|星期|世纪|季度|[分次倍](?![一方之的于])"
    "|[个只人名位本页块元角米克升吨斤秒时天日年月周度岁条张枝支朵棵辆艘架台遍组排行列班种类盒箱包]"
    "|[袋瓶杯碗盘件套双对把根颗粒头匹层间座栋题道段份户家队场节课章篇字票圈步级号里厘亩尺寸株面]"
    "|[扇片筐车桶罐幢堆串捆捧枚项门桌顿边角篮盆幅首床棒滴缸顶盏副]"
    "|是|就|即|为|的?(?:答案|最小值|最大值))"
)
_AFTER = re.compile(".{0,6}?(?:以上|以下|以内|左右|多[个的]?$|以外|之间|或|及|个半|个多|倍[的于])")
_REFUTED = re.compile(
    "^[不没非吗]|^(?:是|就)?(?:不|错)|不对|不是答案|不可能|不成立|不符|不合|舍去|不行|错误"
)


def denies(text: str) -> bool:
    """Whether Chinese words deny what they are about, or make it a condition."""
    return bool(_DENIAL.search(text))


def changes(text: str) -> bool:
    """Whether Chinese words negate, bound or scale the number that follows them."""
    return bool(_BEFORE.search(text)) and not _HARMLESS.search(text)


def goes_on(text: str) -> bool:
    """Whether Chinese words may bound or scale the number that they follow: no measure word."""
    return not _MEASURE.match(text) or bool(_AFTER.match(text))


def refutes(text: str) -> bool:
    """Whether Chinese words deny the value that they follow."""
    return bool(_REFUTED.search(text))


_READABLE = re.compile(
    "(?:以上|以下|以内|[万亿千百十]|分之|[和与或到至]|至少|至多|最少|最多|不?[大小多少高低]于(?:或?等于)?"
    "|不?超过|不足|不是|不等于|等于|负|根号|[元角分米克个只人]|厘米|千米|小时|分钟)+"
)


def readable(text: str) -> bool:
    """Whether Chinese words about a number are a bound, a scale or a unit that answers have."""
    return bool(_READABLE.fullmatch(text))
