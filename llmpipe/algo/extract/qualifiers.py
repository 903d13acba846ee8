"""English words about a value that negate, bound or scale it: the number alone isn't the answer.

They are closed classes; nouns, verbs and adjectives that only say what a number counts are none of
them. `llmpipe.algo.extract.context` says which count where.
"""

from __future__ import annotations

import re


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATIONS = _names(
    "not no never none neither nor cannot without except instead unlike hardly rather avoid barring"
    " isnt arent cant wont dont doesnt didnt"
)
"""In the same clause, of the value; so are the words that end in n't."""

REFUSALS = _names(
    "impossible wrong incorrect incorrectly false untrue doubt unlikely rejected reject discard"
    " discarded invalid extraneous contradiction contradicts fails fail ruled unequal mistaken"
    " excluding excluded exclude excludes"
)
"""Anywhere in the same clause, whatever they are said of."""

CONDITIONS = _names("whose if whether unless suppose supposing assume assuming otherwise provided")
"""Anywhere in the same clause: the number stands in a condition, or under one."""

RIGHT = _names("right correct answer possible valid true solution allowed acceptable enough result")
"""What a thing counted is not, where the count is denied: 5 apples are not enough."""

COUNTS = _names("number many amount count total people percentage fraction probability chance")
"""What is counted may be what isn't: the number of girls that are not here is 5."""

VERBS = _names(
    "is are was were be does do did can could will would may might must should has have had isn"
)
"""After these what is said is said of the value itself, with no noun between."""

COMPARISONS = _names(
    "more less fewer greater smaller larger bigger higher lower longer shorter older younger"
)
"""Right after a number: 5 less than x."""

FRACTIONS = _names(
    "half halves third thirds fourth fourths quarter quarters fifth fifths sixth sixths seventh"
    " sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths thousandth thousandths"
    " millionth millionths"
)
"""Words of fractions, and below of numbers: with them the figure is only a part."""

FIGURES = _names(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
    " hundred thousand million billion trillion"
)

READ_BEFORE = _names(
    "not never negative minus at least most no less fewer more greater larger smaller bigger lower"
    " higher than or equal to up over under above below between exceeding strictly either all real"
    " numbers integers values except and the positive option choice plus half"
)
"""Words before a number that an answer is read with."""

READ_AFTER = re.compile(
    r"(?:or|and) |to \d|at (?:least|most)$|,|(?:hundred|thousand|million|billion|trillion)\b"
    r"|(?:if|when|for) .*\d|[a-z]+ (?:or|and) |[a-z]+,"
)
"""Likewise after one."""

MULTIPLES = _names("hundred thousand million billion trillion percent")
"""Scales that an answer is read with, so that they go with the number."""

MAGNITUDES = _names("tens hundreds thousands millions billions trillions dozens lakhs crores")
"""What a number is said to be given in."""

_BOUNDS = _names(
    "less lesser fewer greater larger bigger smaller higher lower than least most under over above"
    " below beneath beyond within upto upwards downwards between exceeding exceeds exceed exceeded"
    " surpasses surpass surpassing until till nearly almost near nearing close closer closest"
    " approaching approaches approach bounded capped max min maximum minimum any underneath beside"
    " barely ceiling floor inf sup supremum infimum before after past outside inside"
)
_SCALES = _names(
    "negative minus neg opposite negated twice thrice double triple quadruple quintuple doubled"
    " tripled halved squared cubed square cube root roots radical surd sqrt cbrt log logarithm ln"
    " lg sine cosine tangent cotangent secant cosecant arcsine arccosine arctangent sin cos tan"
    " factorial reciprocal inverse reciprocals mod modulo modulus base exponent power raised times"
    " plus point imaginary complex dozen score exponential complement conjugate lakh crore myriad"
    " multiplied divided multiply divide multiplying dividing add adding subtract subtracting"
    " subtracted divides choose non anti per and or but versus vs ratio"
)
_LABELS = _names(
    "step equation eq figure fig chapter section problem question exercise example line part"
    " method note page lemma theorem table item reference ref version appendix term"
)
BEFORE = _BOUNDS | _SCALES | _LABELS | FRACTIONS | FIGURES
"""Right before a number, determiners apart."""

STRONG = _names(
    "than least most exceeding exceeds exceed exceeded below beneath negative minus half twice"
    " thrice double triple squared cubed times divided multiplied factorial reciprocal between"
    " opposite negated modulo mod root"
)
"""Anywhere between a number and what it is said of ("is", "=", "get")."""

OF = BEFORE | _names(
    "multiple multiples factor factors divisor divisors powers squares cubes logarithms percent"
    " percentage fraction fractions portion share excess short shy north south east west out more"
    " sum average mean each some either range order lack exception instead ahead front"
    " product quotient difference permutations combinations derivative integral digits vicinity"
    " neighborhood negation tens"
    " hundreds thousands millions dozens part parts piece many much few best worst inverses"
    " antilog argument norm additive multiplicative magnitude successor predecessor remainder"
    " neighbourhood function sides side"
)
"""Before "of": half of 5."""

TO = _names(
    "up close closer closest next near nearest proportional congruent raised compared opposed prior"
    " relative added contrary according inverse tends tend tending adjacent similar power from"
    " inferior superior not or restricted limited subject belongs respect"
)
"""Before "to": up to 5; but "adds up to 5"."""

BY = _names(
    "multiplied multiply multiplying multiplies divided divide dividing divides divisible scaled"
    " scale scaling bounded limited capped followed preceded indivisible raised raise"
)
"""Before "by": divided by 5; but "increased by 5"."""

FROM = _names(
    "different differs differ distinct differing subtract subtracted subtracting far away excluded"
    " apart deviates derived taken"
)
"""Before "from": different from 5."""

SUMS = _names("add adds adding added sum sums total totals totaling come comes came work works")
"""Before "up to" that doesn't bound."""

DETERMINERS = _names(
    "the a an about around approximately approx roughly exactly just only precisely some his her"
    " its their our your my this that total simply now thus therefore then still also all exact"
    " whole full value number integer figure amount usd dollar dollars euros rs rupees answer"
)
"""What may stand between such a word and its number."""

_CONTINUED = _names(
    "squared cubed factorial plus minus over divided multiplied and or than max maximum min minimum"
    " point mod modulo choose raised base dozen score lakh crore lac mil mln bn tn gross myriad"
    " fold tuple times root power ish odd something onward onwards upward upwards downward"
    " downwards beyond squares cubes pi"
)
AFTER = FRACTIONS | (FIGURES - MULTIPLES) | _CONTINUED
"""Right after a number."""

LATER = _names("exponent power less fewer short shy least most below above under half zero")
"""Anywhere behind a number: 5 degrees below zero."""

CHANGED = re.compile(r"(?!(?:seed|need|breed|reed|weed|shed|sled)s?$)\w{3,}ed")
"""What is done to a number: 5 doubled."""

COPULAS = _names("is are was were be equals becomes get obtain find it's it’s that's that’s")
"""What comes after says what the value is."""

LINKS = _names(
    "in at for on to by of with equal equals given worth even another further us him them me you"
    " back it as hence again always indeed going up like from so left here option choice each"
)
"""What may stand between an "is" and the number."""

PARTICIPLE = re.compile(
    r"(?!divided|multiplied|un)\w+(?:ed|en)"
    r"|sold|left|paid|made|spent|found|set|cut|put|lost|won"
)
"""After an "is": sold for 5."""

UNTIL = _names(
    "because since as so which who whose where when while that whereas hence thus therefore"
    " although though until before after considering given based due"
)
"""A new clause begins, about something else."""

IDLE = _names(
    "left remain remains remaining altogether total more with from into onto over under that this"
    " these those them they there here will would should could must have been were what when where"
    " which while than then also only just very every both such after during before about around"
    " because each together overall still again does drove find found given make made gives like"
    " take takes need needs until between since within without"
)
"""Words behind a number that are no unit."""

SAID = _names(
    "is are was were be equals equal get gets got getting obtain obtains obtained have has had"
    " gives give gave giving yields yield find finds found makes make made leaves left becomes"
    " become so then thus hence therefore but because since which"
)
"""What comes before says nothing about the value."""

TURNS = _names("so thus hence therefore then but which it's it’s that's he she they")
"""A negation before one of these is about something else."""
