"""The units that answers are given in: what each is in base units.

Sizes of non-metric units are those of NIST's Guide to the SI (special publication 811, appendix B).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """``size`` times pi to the ``turns`` of base units, ``zero`` of them at its nought.

    ``powers`` are those of the base units, sorted by name: m, s, g, K, A, mol, cd, bit, rad,
    month (no fixed number of days), the currencies, and "unit" (a length that isn't named).
    """

    powers: tuple[tuple[str, int], ...]
    size: Fraction = Fraction(1)
    turns: int = 0
    zero: Fraction = Fraction(0)


# Names, size, base units. A name in several rows is any of these.
_ROWS = """
unit                              | 1             | unit
inch inches in 英寸               | 0.0254        | m
foot feet ft 英尺                 | 0.3048        | m
yard yd yds 码                    | 0.9144        | m
mile mi 英里                      | 1609.344      | m
nauticalmile nmi 海里             | 1852          | m
lightyear ly 光年                 | 9460730472580800 | m
angstrom Å                        | 1e-10         | m
公里 千米                         | 1000          | m
分米                              | 0.1           | m
厘米 公分                         | 0.01          | m
毫米                              | 0.001         | m
微米                              | 0.000001      | m
纳米                              | 0.000000001   | m
里                                | 500           | m
hectare ha 公顷                   | 10000         | m2
acre 英亩                         | 4046.8564224  | m2
亩                                | 2000/3        | m2
liter litre liters L l ℓ 升       | 0.001         | m3
毫升 cc                           | 0.000001      | m3
gallon gal 加仑                   | 0.003785411784 | m3
quart qt                          | 0.000946352946 | m3
pint pt                           | 0.000473176473 | m3
cup                               | 0.0002365882365 | m3
fluidounce floz                   | 0.0000295735295625 | m3
ounce oz                          | 0.0000295735295625 | m3
tablespoon tbsp                   | 0.00001478676478125 | m3
teaspoon tsp                      | 0.00000492892159375 | m3
sec second 秒 秒钟                | 1             | s
minute min 分钟 分                | 60            | s
hour hr hrs h 小时 时 个小时 钟头 | 3600          | s
day 天 日                         | 86400         | s
week wk 周 星期 个星期            | 604800        | s
fortnight                         | 1209600       | s
month mo 月 个月                  | 1             | month
quarterofayear 季度               | 3             | month
year yr yrs 年 岁 周岁            | 12            | month
year yr yrs 年                    | 31536000      | s
decade                            | 120           | month
century centuries 世纪            | 1200          | month
千克 公斤                         | 1000          | g
克                                | 1             | g
毫克                              | 0.001         | g
斤                                | 500           | g
千瓦                              | 1000000       | g m2 s-3
千瓦时                            | 3600000000    | g m2 s-2
千焦                              | 1000000       | g m2 s-2
千帕                              | 1000000       | g m-1 s-2
兆帕                              | 1000000000    | g m-1 s-2
毫秒                              | 0.001         | s
两                                | 50            | g
tonne metricton t 吨              | 1000000       | g
ton                               | 1000000       | g
ton shortton                      | 907184.74     | g
pound lb lbs 磅                   | 453.59237     | g
ounce oz 盎司                     | 28.349523125  | g
stone                             | 6350.29318    | g
mph                               | 0.44704       | m s-1
kph kmh kmph                      | 5/18          | m s-1
knot kn 节                        | 1852/3600     | m s-1
kgf                               | 9806.65       | g m s-2
lbf poundforce                    | 4448.2216152605 | g m s-2
dyne dyn                          | 0.01          | g m s-2
erg                               | 0.0001        | g m2 s-2
bar                               | 100000000     | g m-1 s-2
atm atmosphere                    | 101325000     | g m-1 s-2
psi                               | 6894757.293168 | g m-1 s-2
mmHg torr                         | 133322.3684   | g m-1 s-2
horsepower hp                     | 745699.87158227022 | g m2 s-3
btu                               | 1055055.85262 | g m2 s-2
byte 字节                         | 8             | bit
dollar usd buck 美元 $            | 1             | usd
cent ¢ 美分                       | 0.01          | usd
penny pennies                     | 0.01          | usd
euro eur 欧元 €                   | 1             | eur
cent                              | 0.01          | eur
pound gbp 英镑 £                  | 1             | gbp
pence penny pennies               | 0.01          | gbp
yuan cny rmb renminbi 元 人民币 块 块钱 元钱 yuanyen | 1 | cny
角 毛                             | 0.1           | cny
分 分钱                           | 0.01          | cny
yen jpy 日元 yuanyen                    | 1             | jpy
rupee inr ₹ 卢比                  | 1             | inr
paisa paise                       | 0.01          | inr
rad radian 弧度                   | 1             | rad
arcminute arcmin                  | 1/10800 pi    | rad
arcsecond arcsec                  | 1/648000 pi   | rad
revolution rev turn 圈 转         | 2 pi          | rad
rpm                               | 1/30 pi       | rad s-1
度                                | 1/180 pi      | rad
度                                | 3600000000    | g m2 s-2
"""
# These take the prefixes of the SI: a symbol and a name.
_METRIC_ROWS = """
m meter metre 米      | 1       | m
s second              | 1       | s
g gram gramme         | 1       | g
t tonne               | 1000000 | g
L liter litre         | 0.001   | m3
l liter litre         | 0.001   | m3
N newton 牛 牛顿      | 1000    | g m s-2
J joule 焦 焦耳       | 1000    | g m2 s-2
W watt 瓦 瓦特        | 1000    | g m2 s-3
Wh watthour           | 3600000 | g m2 s-2
Pa pascal 帕 帕斯卡   | 1000    | g m-1 s-2
cal calorie           | 4184    | g m2 s-2
eV electronvolt       | 1.602176634e-16 | g m2 s-2
A amp ampere 安 安培  | 1       | A
V volt 伏 伏特        | 1000    | A-1 g m2 s-3
Ω ohm 欧 欧姆         | 1000    | A-2 g m2 s-3
C coulomb 库仑        | 1       | A s
F farad 法拉          | 0.001   | A2 g-1 m-2 s4
H henry henries       | 1000    | A-2 g m2 s-2
T tesla               | 1000    | A-1 g s-2
Wb weber              | 1000    | A-1 g m2 s-2
Hz hertz 赫兹         | 1       | s-1
mol mole 摩尔         | 1       | mol
M molar               | 1000    | mol m-3
K kelvin 开尔文       | 1       | K
cd candela            | 1       | cd
lm lumen              | 1       | cd
lx lux                | 1       | cd m-2
Bq becquerel          | 1       | s-1
bit 比特              | 1       | bit
B byte                | 8       | bit
"""
_PREFIXES = {
    "T": ("tera", 12), "G": ("giga", 9), "M": ("mega", 6), "k": ("kilo", 3), "h": ("hecto", 2),
    "da": ("deca", 1), "d": ("deci", -1), "c": ("centi", -2), "m": ("milli", -3),
    "μ": ("micro", -6), "u": ("micro", -6), "n": ("nano", -9), "p": ("pico", -12),
    "f": ("femto", -15),
}  # fmt: skip
_CELSIUS = "°C degC degreecelsius celsius centigrade 摄氏度"
_FAHRENHEIT = "°F degF degreefahrenheit fahrenheit 华氏度"
_POWER = re.compile(r"([A-Za-z]+)(-?\d*)")


def _table() -> dict[str, tuple[Unit, ...]]:
    table: dict[str, list[Unit]] = {}
    for row in _ROWS.strip().splitlines():
        names, unit = _row(row)
        for name in names:
            table.setdefault(name, []).append(unit)
    explicit = frozenset(table)
    for row in _METRIC_ROWS.strip().splitlines():
        (symbol, *names), unit = _row(row)
        for name in (symbol, *names):
            if name not in explicit:
                table.setdefault(name, []).append(unit)
        for short, (long, power) in _PREFIXES.items():
            scaled = Unit(unit.powers, unit.size * Fraction(10) ** power)
            for name in (short + symbol, *(long + n for n in names if n.isascii())):
                if name not in explicit and scaled not in table.setdefault(name, []):
                    table[name].append(scaled)
    kelvin = (("K", 1),)
    celsius = Unit(kelvin, zero=Fraction(27315, 100))
    fahrenheit = Unit(kelvin, Fraction(5, 9), zero=Fraction(45967, 180))
    for names_, letter, unit in ((_CELSIUS, "C", celsius), (_FAHRENHEIT, "F", fahrenheit)):
        for name in (*names_.split(), letter):
            table.setdefault(name, []).append(unit)
    table["°"] = [Unit((("rad", 1),), Fraction(1, 180), 1), celsius, fahrenheit]
    return {name: tuple(dict.fromkeys(units)) for name, units in table.items()}


def _row(row: str) -> tuple[list[str], Unit]:
    names, size, base = (cell.strip() for cell in row.split("|"))
    figure, _, turns = size.partition(" ")
    powers = {m[1]: int(m[2] or 1) for m in _POWER.finditer(base)}
    return names.split(), Unit(tuple(sorted(powers.items())), Fraction(figure), len(turns) // 2)


TABLE = _table()
"""Names and symbols, as they are written, to the units that they may mean."""
