# ruff: noqa: SIM905 - word lists are read and mended more easily as text
"""Words that decide what a problem asks, and words that decide nothing. English and Chinese.

Deciding words have classes, which synonyms share. A *strong* word ("fewer", "product") can't be
lost, added or exchanged without making another problem. A *weak* one ("red", "metre", "triangle")
belongs to a field, and only can't be exchanged for another class of that field. What is in no list
is taken for a word that may be put differently, so the lists are wide; they are by hand.
"""

from __future__ import annotations

# Classes are divided by "|"; in the weak list a line is a field.
_STRONG = """
more greater larger bigger exceed exceeds exceeding extra additional
| fewer less smaller lesser
| most greatest largest biggest maximum maximal maximize maximise maximizes max highest maxima
| least smallest minimum minimal minimize minimise minimizes min fewest lowest minima
| twice | thrice | sum | difference subtract subtracted subtracting subtraction
| product multiply multiplied multiplying multiplication
| quotient divide divided dividing division divides | ratio proportion | remainder modulo mod
| increase increases increased increasing | decrease decreases decreased decreasing reduce reduces
reduced | before prior earlier | after later | odd | even | positive | negative | nonnegative
| nonpositive | nonzero | rational | irrational | prime primes | composite composites
| factor factors divisor divisors | multiple multiples | square squares squared | cube cubes cubed
| thirds | quarter quarters | double doubles doubled | triple triples tripled | dozen dozens
| not no none never nor isn't doesn't don't didn't won't can't cannot aren't wasn't weren't hasn't
haven't couldn't wouldn't shouldn't neither | without | except excluding unless besides
| exactly precisely | inside interior inscribed internal | outside exterior circumscribed external
| upstream | downstream | clockwise | counterclockwise anticlockwise | mean average averages
| median | mode | variance | deviation | radius radii | diameter diameters | circumference
| perimeter | area areas | volume volumes | hypotenuse | diagonal diagonals | acute | obtuse
| parallel | perpendicular orthogonal | derivative differentiate differentiated
| integral integrate antiderivative | sine sin | cosine cos | tan | logarithm log ln | reciprocal
| inverse inversely | numerator | denominator | replacement | percent percentage | union
| intersection | simplify | factorize factorise factorization | expand | thousandth thousandths
| hundredth hundredths | profit | loss | faster | slower | taller | shorter | older elder | younger
| heavier | lighter | cheaper | nearer closer | farther further | longest | shortest | tallest
| oldest | youngest | fastest quickest | slowest | heaviest | lightest | cheapest | nearest closest
| farthest furthest | earliest | latest | prove | disprove | graph sketch plot | estimate
approximate | convert | allowed permitted | repetition repeat repeated repeats | ignore ignoring
neglect | independent independently | dependent | biased | always | sometimes
| 多 超 | 少 | 大 | 小 | 差 减 | 积 乘 | 商 除 | 余 | 倍 | 奇 | 偶 | 正 | 负 | 质 | 增 | 前 | 后
| second 2nd | third 3rd | fourth 4th | fifth fifths 5th | sixth sixths | seventh sevenths | eighth
eighths | ninth ninths | tenth tenths | 内 | 外 | 不 没 非 无 未 | 半 | 最
"""

_WEAK = """
and | or
to | by | from
he him his | she her hers
must | may
above over | under below
add added adding gain gains gained | remove removes removed lose loses lost
rise rises rose grow grows grew up upward upwards | decline declines declined drop drops dropped fall falls fell shrink shrinks down downward downwards
previous previously ago preceding | afterwards following subsequent next
integer integers | natural | real | complex
first 1st | last final
half halves | whole wholes
with | only
all every each | any | some | both | either
north northern | south southern | east eastern | west western
toward towards | away
together combined | separately
remain remains remaining left leftover keep keeps kept save saves saved | spend spends spent pay pays paid use used eaten sell sells sold give gives gave lose loses lost owe owes owed | receive receives received earn earns earned collect collects collected win wins won gain gains gained
left | right
buyer buyers | seller sellers
debit debits debt debts owe owes owed lend lends lent | credit credits borrow borrows borrowed
deposit deposits deposited | withdraw withdraws withdrew withdrawn withdrawal withdrawals
start starts started begin begins began beginning arrive arrives arrived | end ends ended finish finishes finished leave leaves depart departs departed
top | bottom | front | back rear
row rows | column columns
height | width | length | depth | base | side sides | leg legs | edge edges | vertex vertices | face faces | slope | intercept intercepts
isosceles | equilateral | scalene | right
tangent tangents | secant | chord chords | arc arcs | midpoint midpoints | bisector bisectors
centroid | orthocenter | incenter incircle inradius | circumcenter circumcircle circumradius
triangle triangles triangular | rectangle rectangles rectangular | parallelogram | rhombus | trapezoid trapezium | pentagon | hexagon | octagon | circle circles circular | sphere spheres | cylinder cylinders | cone cones | pyramid pyramids | prism prisms | ellipse | parabola | hyperbola
convergent converge converges | divergent diverge diverges
digit digits | ones units | tens | hundreds | thousands
permutation permutations | combination combinations
ordered | unordered
distinct different | same equal identical
probability chance | odds
horizontal horizontally | vertical vertically
concave | convex
linear | quadratic | cubic
determinant | trace | rank
subset subsets | superset supersets
true | false
buy buys bought purchase purchases purchased | sell sells sold
give gives gave donate donates donated lend lends lent | receive receives received borrow borrows borrowed take takes took
earn earns earned | spend spends
win wins won | lose loses lost
discount discounts | tax | tip
simple | compound compounded
monday | tuesday | wednesday | thursday | friday | saturday | sunday
january | february | march | april | june | july | august | september | october | november | december
today | tomorrow | yesterday
morning | afternoon | evening | night
week weeks weekly | day days daily | month months monthly | year years yearly annual annually | hour hours hourly hr hrs | minute minutes | seconds sec secs
mm millimeter millimeters millimetre millimetres | cm centimeter centimeters centimetre centimetres | meter meters metre metres | km kilometer kilometers kilometre kilometres | inch inches | foot feet ft | yard yards | mile miles mi
gram grams | kg kilogram kilograms kilo kilos | pound pounds lb lbs | ounce ounces oz | ton tons
liter liters litre litres | ml milliliter milliliters millilitre millilitres | gallon gallons | quart quarts | pint pints | cup cups
dollar dollars | cents cent | nickel nickels | dime dimes | penny pennies
celsius | fahrenheit
mph | kph
speed velocity | acceleration | distance | time
heads head | tails tail
boy boys | girl girls
man men | woman women
male males | female females
adult adults | child children kid kids
husband | wife
brother brothers | sister sisters | mother mom | father dad | son sons | daughter daughters
red | blue | green | yellow | black | white | purple | brown | pink | gray grey
hotter warmer | colder cooler
full | empty
possible | impossible
open | closed
alternate alternating | consecutive successive
adjacent | opposite
supplementary | complementary
finite | infinite
arithmetic | geometric | harmonic
deeper | wider | narrower | longer | higher | lower
和 加 共 | 剩
涨 | 降 跌
上 | 下
切 | 交 | 离 | 垂
行 | 列
首 | 末
收 | 付 支
胜 赢 成 | 败 输
凸 | 凹
顶 | 底
公 | 私
左 | 右
东 | 南 | 西 | 北
快 | 慢
长 | 短 | 宽 | 高 | 低
重 | 轻
远 | 近
男 | 女
买 | 卖
进 | 出
径 | 周 | 面 | 体
每 各 | 至 | 都 | 仅 只
元 | 米 | 厘 | 毫 | 克 | 吨 | 时 | 秒 | 天 日 | 月 | 年
"""  # noqa: E501 - a line is a field

STRONG: dict[str, int] = {
    word: number for number, line in enumerate(_STRONG.split("|")) for word in line.split()
}
"""A strong word's class."""

# Things of which one is never another. Classes are divided by "|".
_TERMS = """
abelian commutative | simple | cyclic | solvable | nilpotent | normal | free | torsion | dihedral
| symmetric | antisymmetric skew-symmetric | alternating | reflexive | transitive | associative |
distributive | group groups | ring rings | field fields | module modules | ideal ideals | subgroup
subgroups | subring subrings | coset cosets | homomorphism homomorphisms | isomorphism
isomorphisms | automorphism automorphisms | endomorphism endomorphisms | kernel kernels | image
images | injective injection injections one-to-one | surjective surjection surjections onto |
bijective bijection bijections | row rows | column columns | matrix matrices | vector vectors |
scalar scalars | eigenvalue eigenvalues | eigenvector eigenvectors | singular | nonsingular
invertible | nullity | diagonalizable | triangular | orthonormal | hermitian | unitary | transpose
| adjoint | basis bases | dimension dimensions | span spans | success successes | failure failures
| inclusive | exclusive | bounded | unbounded | compact | connected | disconnected | dense |
continuous | discontinuous | differentiable | integrable | monotone monotonic | periodic | convex
| concave | supremum | infimum | limit limits | limsup | liminf | series | sequence sequences |
domain domains | range ranges | codomain | root roots zeros | pole poles | residue residues |
coefficient coefficients | exponent exponents | degree | order orders | modulus | argument
arguments | conjugate | asymptote asymptotes | focus foci | directrix | eccentricity | latus |
center centers centre centres | altitude altitudes | excenter excircle | tangent tangents
tangential | secant | normal | intersecting | cotangent cot | cosecant csc | sinh | cosh | tanh |
arcsin | arccos | arctan | floor | ceiling | gcd gcf hcf | lcm | factorial factorials | palindrome
palindromes palindromic | vowel vowels | consonant consonants | letter letters | word words | edge
edges | vertex vertices | tree trees | path paths | cycle cycles | bipartite | planar | eulerian |
hamiltonian | clique cliques | expectation expected | covariance | correlation | skewness |
kurtosis | quartile quartiles | percentile percentiles | binomial | poisson | uniform |
exponential | normal gaussian | hypergeometric | heptagon | nonagon | decagon | dodecagon | kite
kites | quadrilateral quadrilaterals | tetrahedron | cube cubes | cuboid | octahedron |
dodecahedron | icosahedron | annulus | sector sectors | segment segments | ray rays | line lines |
plane planes | point points | angle angles | axis axes | increasing | decreasing | strictly |
consistent | inconsistent | homogeneous | inhomogeneous | explicit | implicit | divergence | curl
| gradient | laplacian | necessary | sufficient | converse | contrapositive | numerators |
denominators | principal interest | binary | ternary | octal | decimal | hexadecimal | unlimited |
limited | labeled labelled distinguishable | unlabeled unlabelled indistinguishable | slope slopes
gradient | height heights | width | length lengths | depth | determinant | trace | rank
"""

TERMS: dict[str, frozenset[int]] = {}
"""The classes of a term of mathematics."""

for _number, _words in enumerate(_TERMS.split("|")):
    for _word in _words.split():
        TERMS[_word] = TERMS.get(_word, frozenset()) | {_number}

WEAK: dict[str, dict[int, int]] = {}
"""A weak word's class in each of its fields."""

FIELDS: list[frozenset[str]] = []
"""The words of each field."""

for _field, _line in enumerate(_WEAK.strip().splitlines()):
    FIELDS.append(frozenset(_line.replace("|", " ").split()))
    for _number, _words in enumerate(_line.split("|")):
        for _word in _words.split():
            if _word not in STRONG:
                WEAK.setdefault(_word, {}).setdefault(_field, _number)

STOP = frozenset(
    """
a an the this that these those there here it its they them their theirs he him his she her hers we
us our you your i my me is are was were be been being am do does did done has have had having will
would shall should can could may might must of in on at to from by for as into onto than then so
and or but if when while where what which who whom whose how many much number numbers value values
amount total totally altogether overall let suppose assume assuming given consider considering such
also too just now currently find determine compute calculate evaluate solve work out figure tell get
gets obtain please answer question problem following result equals satisfies satisfying satisfy
about need needs want wants one another come comes make makes made
的 了 是 在 有 个 把 被 就 那 这 它 他 她 们 请 求 问 几 何 么 什 些 得 为 用 与 及 其 已
知 设 若 如 多少
""".split()
)
"""Words that say nothing of their own; how many of them differ doesn't matter."""

ASKED = frozenset(
    """
answer answers boxed box step steps reason reasoning solution solve problem question explain work
exercise task think carefully tutor assistant 解 答 题 步 案
""".split()
)
INSTRUCTION = (
    STOP
    | ASKED
    | frozenset(
        """
final thinking solving solved working show explanation detail details detailed give write put
express provide state present report return output simplest form math mathematical mathematics
helpful before after inside simplify below above clearly using enclose enclosed within sure check
double logic logically method process justify complete completely fully hint note response only with
each all every read help student teacher expert mathematician down careful correct reply test exam
from chapter homework quiz practice try through time let's 写 出 过 程 骤 最 后
终 结 果 放 框 中 逐 思 考 推 理 下 面 计 算 将 里 并 给 一 每
""".split()
    )
)
"""Words of sentences that tell how to answer; such a sentence has one of `ASKED`, too."""

ASKING = frozenset(
    """
how what which who whom whose when where why find determine compute calculate evaluate solve is are
does do did can will if let suppose state say express give list name count show
""".split()
)
"""How a sentence begins that asks something, or supposes it."""

_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"

NUMBERS: dict[str, int] = {
    **{word: value for value, word in enumerate(_ONES.split())},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), 2)},
    "hundred": 100,
    "thousand": 1000,
    "million": 1_000_000,
}
CHINESE_NUMBERS: dict[str, int] = {
    **{word: value for value, word in enumerate("零一二三四五六七八九十")},
    "两": 2,
    "百": 100,
    "千": 1000,
    "万": 10_000,
    "亿": 100_000_000,
}
