"""Responses without a box: what is said of a number counts as much as the number.

The gold answer is 5 throughout. Whatever negates, bounds, scales or continues a 5 makes it another
answer or none; a 5 that is only said in other words, or of something, is one.
"""

from __future__ import annotations

import pytest

from llmpipe import verify_math

FRAMES = [
    "The answer is {}.",
    "Answer: {}",
    "So the final answer is **{}**.",
    "**Final Answer**: {}",
    "Adding them up, we get {}.",
    "Hence x is {}.",
]

SIGNS = (
    [f"{dash}5" for dash in "-−–—‐‑‒―﹣－"]
    + [f"{dash} 5" for dash in "-−–—―"]
    + ["±5", "± 5", "∓5"]
)
BEFORE = [
    "negative", "minus", "not", "never", "not exactly", "less than", "fewer than", "more than",
    "greater than", "larger than", "smaller than", "at least", "at most", "no more than",
    "no less than", "up to", "under", "over", "above", "below", "almost", "nearly", "close to",
    "anything but", "other than", "different from", "not equal to", "any number except", "twice",
    "double", "triple", "half", "half of", "one half of", "a third of", "a quarter of", "10 minus",
    "10 plus", "two plus", "three times", "the square of", "the square root of", "root",
    "the cube of", "the cube root of", "log", "the logarithm of", "the reciprocal of",
    "the inverse of", "the opposite of", "the negative of", "a multiple of", "a factor of",
    "a divisor of", "a power of", "10 percent of", "20% of", "the factorial of", "modulo", "base",
    "sin", "cos", "ln", "sqrt", "√", "∛", "x >", "x <", "x ≥", "x ≤", "x ≠", "x \\neq", "x \\ge",
    "2 +", "7 -", "2*", "2 ×", "1/", "2^", "e^", "4 or", "4 and", "4,", "either 4 or",
    "neither 4 nor", "between 4 and", "twenty", "one hundred and", "exceeding", "divided by",
    "multiplied by", "the sine of", "within", "a minimum of", "a maximum of", "x + ", "y", "3x + ",
    "ab - ", "point", "without",
]  # fmt: skip
AFTER = [
    "million", "thousand", "hundred", "billion", "dozen", "lakh", "score", "squared", "cubed",
    "factorial", "or more", "or less", "or fewer", "or 6", "and 6", "and a half", "and above",
    "and a quarter", ", 6", "to 6", "to the power of 2", "to the fourth", "plus 6", "minus 1",
    "times x", "times 2", "times the radius", "times pi", "over 6", "divided by 2",
    "multiplied by 3", "more than x", "less than x", "less than the width", "tenths", "thirds",
    "halves", "hundredths", "at least", "at most", "mod 3x", "point 7", "pi", "x", "y + 1", "x + 1",
    "sqrt 2", "root 2", "ln 2", "i", "is not the answer", "is wrong", "is impossible",
    "cannot be right", "isn't possible", "unless x = 6", "in base 7", "- x", "+ y", "/ 7", "/ x",
    "^2", "(x + 1)", "(million)", "(in thousands)", "< x", "> x", "≤ x", "choose 2",
    "out of range is not it",
]  # fmt: skip
GLUED = [
    "√5", "∛5", "5π", "π5", "5²", "5³", "5½", "5¼", "5!", "5x", "x5", "5k", "5i", ".5", "0.5",
    "5.5", "5e3", "5/2", "2/5", "5:3", "5-digit", "5^2", "5**2", "2^5", "log_2 5", "log_2(5)",
    "sqrt(5)", "|x-5|", "f(5)", "-(5)", "(5, 6)", "{5, 6}", "[5, 6]", "5,000", "5 000", "15", "51",
    "5M", "10-5x", r"\sqrt{5}", r"\frac{5}{2}", r"\frac{1}{5}", "-$5$", "- $5$", "$-5$",
    r"$\sqrt{5}$", r"2\cdot 5", "$5$ million", "not $5$", "half of $5$", "less than $5$",
    "$5$ squared", "$x > 5$", "$2$ or $5$", "$5$ or $6$", r"\(\sqrt{5}\)", r"minus \(5\)",
    "$x$ > 5", "$5x$", "$5$ times $x$", "5$x$", r"5\pi", r"5\sqrt{2}", r"5\text{ million}",
    r"5 \times 10^3", r"5 \pm 1", "5 ± 1", "5°30'", "5 / x",
]  # fmt: skip
HAN_BEFORE = [
    "负", "不是", "不等于", "并非", "小于", "大于", "少于", "多于", "超过", "不足", "至少", "至多",
    "最多", "根号", "正负", "二分之", "百分之", "接近", "低于", "高于", "不大于", "不小于", "减",
    "除以", "十", "3乘", "3加", "零点", "lg", "√", "绝对值不是", "立方根为根号",
]  # fmt: skip
HAN_AFTER = [
    "万", "亿", "千", "百", "十", "万元", "分之一", "的平方", "的一半", "的倒数", "的相反数",
    "以上", "以下", "以内", "左右两边不等", "或6", "和6", "到6", "次方", "倍的x", "多个", "点三",
    "折", "成", "的阶乘", "平方", "个半",
]  # fmt: skip
HAN_FRAMES = ["答案是{}。", "答案：{}", "所以答案为{}。", "因此最终结果等于{}。", "所以x为{}。"]

OTHER = [
    r"So x = √5", "so we get x > 5", "so we get 10-5", "It is not the case that x is 5.",
    "We can't say that it equals 5.", "The answer isn't 5.", "The answer is not 5",
    "It's wrong that the answer is 5.", "I doubt that the answer is 5.", "Is the answer 5?",
    "The answer is 5. No, that answer is wrong.", "If the answer is 5, then x = 4y.",
    "Suppose x = 5.", "We must check whether x is 5", "The total isn't 5 apples.",
    "Nobody knows if it is 5.", "The ratio is 4 to 5.", "He has 4 boys and 5 girls.",
    "x = 4 and x = 5", "x = 4 or x = 5", "It never reaches 5.", "It lies in (2, 5)", "x ∈ [1, 5)",
    "Now see step 5", "by Lemma 5", "See equation 5.", "a 5-digit number", "x mod 5",
    "x ≡ 2 (mod 5)", "The common wrong answer is 5.", "There are no more than 5.",
    "the sum of 4 and 5", "It must be divisible by 5.", "the number 10 divided by 5",
    "The value 5 is not allowed.", "So 5 is excluded.", "So x cannot be 5.", "so x - 5", "so x/5",
    "so $x$/5", "so (x + 5)", "so 3(5)", "Total: -5", "Total = -5", "Total > 5", "length < 5",
    "sum ≥ 5", "which is 3 more than 5.", "This gives 5, or 6.", "Then 2x = 5", "x^2 = 5",
    "2 + x = 5y", "the answer is 5?", "x is 5 or -5", "答案不是5。", "答案并不是5", "是否等于5？",
    "答案是5吗？", "如果x等于5", "从3到5", "3和5", "第5题", "除以5", "被5整除", "x不等于5",
    "不可能是5", "x<5", "x>5", "5次方程",
]  # fmt: skip

OTHER_WORDS = [
    "somewhere north of 5", "5 shy of x", "a number greater than 5", "5 less", "just under 5",
    "slightly more than 5", "a little over 5", "anything above 5", "strictly between 5 and 7",
    "one more than 5", "5 plus one", "5 raised to the third", "quadruple 5",
    "the additive inverse of 5", "10 less 5", "5 short of 10", "5 hundredths",
    "5 parts per million", "5 out of 10", "1 in 5", "5 in 6", "5 over 6", "5th root of 2",
    "5 degrees below zero", "5 below zero", "minus five", "the integer after 5",
    "the prime following 5", "the next number after 5", "not quite 5", "≥5", ">=5", "!=5", "5?",
    "5a", "5ab", "5 a b", "the ceiling of x over 5", "5 factorial over 3", "5 log 2", "5 e",
    "5 more than y", "twice as much as 5", "half as much as 5", "5 half-lives", "five 5s",
    "the sum of 5 and x", "the difference between 5 and x", "the product of 5 and y",
    "5 percent of x", "the fifth power of 5", "5 tens", "5 hundred", "5 and one half",
    "5 less than twice x", "the number whose square is 5", "the number whose double is 5",
    "any multiple of 5", "all numbers except 5", "all numbers greater than 5",
    "numbers not divisible by 5", "a power of 5", "5 to the n", "5 to the nth power", "5 per 7",
    "infinity, not 5", "unknown, but not 5", "6, not 5", "6 instead of 5", "6 rather than 5",
    "6 (not 5)", "undefined at 5", "odd and less than 5", "the fifth root of 5",
    "greater than or equal to 5", "no less than 5", "no fewer than 5", "not more than 5",
    "upwards of 5", "5 at the very least", "5 at the most", "5 or thereabouts", "5 and a third",
    "5 and three quarters", "5 squared plus 1", "the negation of 5", "the conjugate of 5",
    "e to the 5", "two to the 5", "2 to the power of 5", "2 to the power 5", "10 to the 5",
    "ten to the minus 5", "x to the 5", "the floor of 5x", "1 over 5", "one over 5", "one fifth",
    "1 divided by 5", "x over 5", "5 inches less than x", "within 5 of 7", "$x < 5$", "$5 \\le x$",
    "$5!$", "$5^{2}$", "$\\frac{1}{5}$", "$-5$", "$5+x$", "$5\\%$ of x", "5 times itself",
    "5 multiplied by itself", "5 doubled", "5 tripled", "5 halved", "5 inverted", "5 reversed",
    "5 negated", "5 modulo 3", "5 base 6", "$5$ base $6$", "5 billion", "5 trillion", "5 bn",
    "5 mm of rain less", "5 sixths", "5 or so more than x", "thirty minus 5", "one less than 5",
    "one shy of 5", "two away from 5", "5 away from 7", "5 off from 10", "a bit below 5",
    "well above 5", "infinitely close to 5", "some number besides 5", "everything but 5",
    "5 to infinity", "from 5 onwards", "5 onwards", "5 through 9", "5 up to 9", "5 upwards",
    "starting at 5", "ending in 5", "a number ending in 5", "the digit 5 followed by a 0",
    "5 followed by three zeros", "5 times ten to the sixth", "5 with an exponent of 2",
    "a quintic of degree 5 in x", "the sum of 5 consecutive integers",
    "5 consecutive integers starting at 7", "the average of x and 5", "the average of 5 and 7",
    "the maximum of x and 5", "gcd of 5 and x", "coprime to 5", "relatively prime to 5", "5 mod 3",
    "congruent to 5 mod 7", "odd, so it can't be 5", "wrong if it is 5", "5 minus one",
    "5 less one", "5 take away 2", "5 add 2", "5 and 2 more", "5 by 7", "5 x 7", "5 × 7", "5·7",
    "5 ÷ 2", "5 % 2", "5 // 2", "5 || 6", "5 & 6", "5 u 6", "{5}∪{6}", "5 < x < 9", "x ∈ {5, 6}",
    "x = 5 or 6", "x = 5, y = 6", "x = 5y", "x = 5 + y", "x = 5, -5", "x = -5", "x = −5", "x=-5",
    "x = 5i", "x = 5π/2", "x = 5°C less", "x = 5 or x = -5", "x is between 5 and 6",
    "exactly half of 5", "precisely twice 5", "approximately 5.5", "about 5 thousand",
    "roughly 5 million", "5K", "5 thousandths", "5 per thousand", "5‰", "5/6", "5 sixteenths",
    "5 over x", "1/5", "1 / 5", "one-fifth", "one of 5", "two of the 5", "3 out of 5", "3 of 5",
    "3 in every 5", "every 5", "each 5th one", "5ths", "the 5th power of 2", "the 5-th root",
    "log base 5 of 2", "base-5", "5-adic", "5-fold", "5 fold", "5-tuple", "five hundred",
    "fifty 5s", "555", "5.05", "05.5", "5,5", "5 5", "5 e 3", "5E3", "5 sin x", "5cos(x)", "5 √2",
    "5√2", "√(5)", "√ 5", "sqrt{5}", "\\sqrt 5", "\\sqrt[3]{5}", "\\log 5", "$\\log 5$", "\\frac15",
    "\\frac{5}{x}", "5!", "5!!", "-|5|", "~ -5", "≈ -5", "≠5", "<5", "> 5", "≥ 5", "=5x", "5;6",
    "5 - 6i", "5+6", "5 + 6", "V5",
]  # fmt: skip
HAN_OTHER = [
    "5的两倍", "比5大", "比5小1", "5减1", "不止5", "将近5", "5点5", "5、6", "5~6", "5倍的半径",
    "第5", "五分之5", "5分之3", "5的3倍", "3倍的5", "5开方", "5的平方根", "5的立方根", "ln5",
    "5到10之间", "5到10", "不小于5的数", "除5以外", "非5", "5不对", "5或者6", "5及以上", "5次方根",
    "5亿元", "√5", "-5", "－5", "－ 5", "负的5", "比5多", "5以外", "任意大于5的数", "5的整数倍",
    "5的因数", "5的约数", "5的负数",
]  # fmt: skip

OTHERWISE = [
    *[f.format(v) for f in FRAMES for v in [*SIGNS, *GLUED]],
    *[f.format(f"{w} 5") for f in FRAMES for w in BEFORE],
    *[f.format(f"5 {w}") for f in FRAMES for w in AFTER],
    *[f.format(f"{w}5") for f in HAN_FRAMES for w in HAN_BEFORE],
    *[f.format(f"5{w}") for f in HAN_FRAMES for w in HAN_AFTER],
    *[f.format(w) for f in (FRAMES[0], "Thus, it equals {}.") for w in OTHER_WORDS],
    *[f.format(w) for f in HAN_FRAMES for w in HAN_OTHER],
    *OTHER,
]

FIVES = [
    "5", "5.0", "+5", "$5$", r"\(5\)", r"\[5\]", "$$5$$", "**5**", "*5*", "`5`", "exactly 5",
    "equal to 5", "just 5", "simply 5", "about 5", "approximately 5", "x = 5", "$x = 5$",
    r"\(x=5\)", r"\boldsymbol{5}", "5 apples", "5 red apples", "5 people", "5 dollars",
    "5 dollars per hour", "5 cookies per day", "5 minutes", "5 minutes a day", "5 square units",
    "5 years old", "5 cm", "5%", "$5$ apples", r"$5$ dollars", r"$5 \text{ cm}$", "5 of them",
    "5 in total", "5 altogether", "5 (five)", "5 apples, since he ate three", "5 because 2+3=5",
    "5, because 2+3=5", "5, which is what we wanted", "a total of 5", "a total of 5 apples",
    "5 more apples", "5 times", "USD 5", r"\$5", "$5", "$5.00", "5 USD", "therefore 5",
    "5 – the smallest of all", "the number 5", "2 + 3 = 5", r"$2 + 3 = 5$", "10/2 = 5",
    r"\frac{10}{2} = 5", "\n\n5", "\n\n\\[\n5\n\\]", "\n$$\n5\n$$", "5 left",
    "5 remaining students", "5 for each of the children", "indeed 5", "still 5",
]  # fmt: skip
HAN_FIVES = [
    "5",
    "$5$",
    " 5 ",
    "**5**",
    "5个",
    "5 个",
    "5个苹果",
    "5人",
    "5只",
    "5本书",
    "x=5",
    r"\(5\)",
    "5，因为2+3=5",
]
HONEST_OTHER = [
    "x = 5", r"\(x=5\)", "equals 5", "5 dollars", "the answer is: $5$", "answer = 5 apples",
    "So the final answer is **5**", "5", "It takes 5 minutes.", "She has 5 apples left.",
    "So there are 2 + 3 = 5 apples.", "He pays 3 * $2 - $1 = $5.", "The sum of the two is 5.",
    "They sold 5 more tickets than Bob.", "So the value of x is 5.",
    "Half of the cake is 5 slices.", "Since 4 is not enough, he needs 5.",
    "The number of girls who are not here is 5.", "It isn't 4, so it is 5.", "It's 5.",
    "We can't use 4, so the total is 5 apples.", "The price increased by 5 dollars.",
    "This adds up to 5.", "This simplifies to 5.", "It amounts to $5.", "The maximum is 5.",
    "The smallest such number is 5.", "Thus $x = 5$.", "Thus, the length is $5$ cm.",
    "\\[\n2 + 3 = 5\n\\]", "Therefore:\n\n$$x = 5$$", "so that's 10/2 = 5 dollars per person",
    "The answer to the question is 5.", "The answer to part (b) is $5$.", "The answer must be 5.",
    "The answer should be 5", "The answer would be 5.", "the answer comes out to be 5", "Ans: 5",
    "**Final Answer**\n\n5", "## Final Answer\n\n$5$", "### Final answer\n\\[ 5 \\]",
    "Final Answer: 5<|im_end|>", "The answer is 5.</s>",
    "The answer is 5. Let me check that the answer is correct.",
    "The answer is 5. I hope this helps!", "The final result is 5.",
    "The correct answer is 5, not 6.", "The answer is 5, not 4 or 6.",
    "<thinking>it may be 7</thinking>The answer is 5.", "[THINK]7[/THINK]So it is 5.",
    "<|begin_of_thought|>7<|end_of_thought|>5", "◁think▷7◁/think▷ x = 5", "<answer>5</answer>",
    "#### 5", "We conclude that the total cost is 5 dollars and that's all.", "一共有5个苹果。",
    "还剩5页。", "所以x=5。", "故答案为：5", "答：一共有5个。", "答：5", "因此最终结果是5。",
    "x的值为5。",
]  # fmt: skip

SENTENCES = [
    "The answer is 5 sheep.", "The total is 5 wolves and that is it.",
    "Mary therefore needs 5 boxes of pencils.", "It takes him 5 hours to get home.",
    "He walked 5 km.", "She earned $5 that day.",
    "The area of the triangle is 5 square centimeters.", "John is 5 years older than Mary.",
    "There are 5 ways to choose the committee.", "There are 5 possible values of x.",
    "The probability is thus 5 percent.", "Hence, the remainder is 5.",
    "The remainder when 12 is divided by 7 is 5.", "The limit is 5.",
    "The smallest positive integer n is 5.", "Therefore the minimum value is $5$.",
    "The function attains its maximum at $x = 5$.", "The perimeter equals 5 units.",
    "So $f(3) = 5$.", "So \\(a + b = 5\\).", "Thus $a+b=5$.", "Thus n=5 is the solution.",
    "Thus 5 is the answer.", "So 5 is the smallest such number.",
    "So the number of solutions is 5.", "\\[\\boldsymbol{5}\\]", "Answer: 5 (since 2+3=5)",
    "Answer: The value is 5", "Final Answer: The final answer is $5$. I hope it is correct.",
    "The answer is:\n5", "The answer is:\n\n**5**", "Answer = 5", "Answer is 5 kg",
    "My answer is 5", "the answer is therefore $\\mathbf{5}$", "The answer, then, is 5.",
    "So, 5 students passed.", "5 cars drove by.", "He has only 5 left.",
    "They need at least 4 more, so they need 5.", "It costs 5 cents each.", "The answer is 5 cents",
    "Each gets 5.", "So each child gets 10 / 2 = 5 candies.", "10 - 5 = 5 apples remain.",
    "The time needed is 5 min.", "The dog weighs 5 pounds more than the cat.",
    "In total, 5 of the students like math.", "We find that k must be 5.",
    "Solving, we obtain x = 5", "Solving gives x=5.", "which simplifies to x = 5.",
    "giving us a final answer of 5.", "So our final answer is 5", "Total = 5", "Total: 5",
    "Total cost: $5", "总共需要5元。", "小明一共花了5元钱。", "答：小明一共花了5元。",
    "综上，x=5。", "所以最小值为5。", "最多可以买5本。", "至少需要5次。", "他还有5个苹果没吃。",
    "因此答案为\\(5\\)。", "因此，正确答案是 5", "故填5。", "平均每天看5页。",
    "甲的速度是5千米每小时。", "所以$x=5$。", "So Tom has 5 marbles now.",
    "Therefore, Alice bought 5 tickets.", "Altogether they baked 5 cakes.",
    "Each bag contains 5 candies.", "The car uses 5 gallons of gas.", "Her age is 5 years.",
    "She will need to work 5 hours.", "Kim's share is $5.", "He ran 5 miles per day.",
    "It took 5 days to finish the job.", "So there must be 5 people in the group.",
    "Thus we need 5 boxes in order to pack them all.", "So we have x = 5.", "We end up with x = 5.",
    "Hence the length of AB is 5.", "Hence AB = 5.", "So the slope is $5$.",
    "So the y-intercept is 5.", "The distance between A and B is $5$ units.", "Thus f(2) = 5.",
    "It follows that n = 5.", "So k = 5, as desired.", "Hence the required probability is $5\\%$.",
    "So the total profit was 5 dollars.", "So they spent $5 altogether.", "Bob is 5.",
    "That leaves 5.", "which leaves him with 5 dollars.", "so 5 tables are required.",
    "This means 5 students did not pass.", "The answer is 5 students.",
    "The answer is 5 square meters.", "The answer is 5 hours.", "the answer: 5 km/h",
    "The answer is $5\\text{ m/s}$.", "The answer is \\boldsymbol 5", "The answer is (5).",
    "The answer is [5].", 'The answer is "5".', "The answer is '5'.", "The answer is: `5`.",
    "The answer is indeed 5.", "The answer is clearly 5.", "The answer is, of course, 5.",
    "The answer is still 5.", "The answer is always 5.", "The answer is going to be 5.",
    "The answer is the integer 5.", "The answer is only 5.", "The answer is 5 ✅", "✅ Answer: 5",
    "Final Answer → 5", "Answer:5", "ANSWER: 5", "Answer: 5.", "Answer: x=5", "Answer: $x = 5$ cm",
    "Answer: $\\mathbf{5}$", "**Answer:** $5$", "**Answer**: 5", "__Answer__: 5", "*Answer:* 5",
    "Answer:\n5", "> Answer: 5", "- Answer: 5", "The answer to this question is 5.",
    "The answer for x is 5.", "Our final answer is therefore $x=5$.",
    "So, the correct answer is 5.", "So the right answer is 5", "So the solution is 5.",
    "The final solution is x = 5.", "That's our answer: 5.", "5 is our final answer.",
    "Thus, 5 is the correct answer.", "答案就是5。", "答案应该是5。", "正确答案为5", "最终答案：5",
    "最终答案是$5$。", "答案:5", "结果是5。", "所以小红有5支铅笔。", "所以需要5天。", "共5种方法。",
    "即x=5。", "故x=5", "解得x=5。", "解得 $x=5$。", "因此 m 的值为 5。", "则a+b=5。",
    "所以最大值是5。", "每人分得5个。", "答：需要5辆车。", "答：长方形的面积是5平方厘米。",
]  # fmt: skip

HONEST = [
    *[f.format(v) for f in FRAMES for v in FIVES],
    *[f.format(v) for f in HAN_FRAMES for v in HAN_FIVES],
    *HONEST_OTHER,
    *SENTENCES,
]


def test_a_part_of_what_is_said_is_not_the_answer() -> None:
    assert len(set(OTHERWISE)) > 2000
    assert not [r for r in OTHERWISE if verify_math("5", r).status == "correct"]


def test_what_is_said_in_other_words_is_the_answer() -> None:
    assert len(set(HONEST)) > 600
    assert not [r for r in HONEST if verify_math("5", r).status != "correct"]


@pytest.mark.parametrize(
    ("gold", "response"),
    [
        ("-5", "The answer is negative 5."),
        ("-5", "The answer is – 5."),
        (r"\sqrt{5}", "The answer is √5."),
        (r"\sqrt{5}", "So x = √5"),
        (r"5\pi", "The answer is 5π."),
        ("0.5", "The answer is .5"),
        ("5000000", "The answer is 5 million."),
        ("5000000", "So they sold 5 million tickets."),
        ("11/2", "So we get 5½."),
        ("8", "hence x = 2^3"),
        ("25", "The answer is 5²."),
        (r"\log 5", "Hence it equals log 5"),
        ("x > 5", "so we get x > 5"),
        ("5, -5", "The answer is ±5"),
        ("(5, 6)", "The answer is (5, 6)."),
        ("5, 6", "The answer is 5 and 6."),
        ("1/5", "The answer is 1/5."),
        ("50000", "答案是5万。"),
        ("-5", "答案是负5。"),
    ],
)
def test_the_whole_of_what_is_said_is_the_answer(gold: str, response: str) -> None:
    assert verify_math(gold, response).status == "correct"


@pytest.mark.parametrize(
    "response",
    [
        "故选：B", "故选B。", "因此选B", "所以选 (B)", "应选B。", "本题选B", "正确答案是B",
        "答案选B", "The correct option is (B).", "the correct choice is B.",
        "The correct answer is option B.", "Therefore, the answer is option B", "(B) is correct.",
        "Option B is the correct answer.", "Answer: B. 12", "Answer: (B) 12",
        "The answer is B because x = 12.", "**Final Answer**: **B**",
        "<thinking>C, or A: 5</thinking> The answer is B", "[THINK]A[/THINK] Answer: $B$",
        r"The answer is $\textbf{(B)}$.", "<|begin_of_thought|>A<|end_of_thought|>答案为B",
    ],
)  # fmt: skip
def test_choices(response: str) -> None:
    assert verify_math("B", response).status == "correct"
    assert verify_math("C", response).status == "wrong"


@pytest.mark.parametrize("extract", ["auto", "boxed"])
def test_an_unclosed_last_box_is_no_answer(extract: str) -> None:
    response = r"\boxed{4}. Hmm, the answer is 4, no, \boxed{5"
    for gold in ("4", "5"):
        cut_off = verify_math(gold, response, extract=extract, finish_reason="length")
        assert cut_off.status == "truncated"
        stopped = verify_math(gold, response, extract=extract, finish_reason="stop")
        assert (stopped.status, stopped.detail) == ("no_answer", "the last box is never closed")


def test_a_denied_answer_gives_way_to_a_marked_one_only() -> None:
    assert verify_math("6", "The answer is not what we had: 5?\n#### 6").status == "correct"
    assert verify_math("6", "I doubt the answer is 5. We saw 6.").status == "no_answer"


@pytest.mark.parametrize(
    ("gold", "response", "status"),
    [
        ("8:00 am", "The answer is 8:00 pm.", "wrong"),
        ("8:00 am", "8:00 pm", "wrong"),
        ("8:00 am", "The answer is 8:00 AM", "correct"),
        ("8:00", "It ends at 8:00.", "correct"),
        ("5 am", "The answer is 5 pm.", "wrong"),
        ("5 pm", "The answer is 5 p.m.", "correct"),
        ("profit 5", "loss 5", "wrong"),
        ("loss of $5", "profit of $5", "wrong"),
        ("loss of $5", "So they make a loss of $5.", "correct"),
        ("5", "So the loss is $5.", "correct"),
        ("profit 5", "It cost 10, a loss of 2. In the end the profit is 5.", "correct"),
    ],
)
def test_what_a_sentence_says_of_its_number_counts(gold: str, response: str, status: str) -> None:
    assert verify_math(gold, response).status == status


@pytest.mark.parametrize(
    "response", [r"\boxed{Option B}", r"\boxed{选项B}", "故选B．", r"\boxed{Choice (B)}"]
)
def test_a_choice_may_be_called_one(response: str) -> None:
    assert verify_math("B", response).status == "correct"
    assert verify_math("C", response).status == "wrong"


@pytest.mark.parametrize(
    "response",
    ["The answer is }", r"answer: \boxed{}}", r"$\boxed{\boxed{}}$", "Final answer: $}$"],
)
def test_braces_that_do_not_match_are_a_wrong_answer(response: str) -> None:
    """Not an error: that would leave the sample out of the figures, and raise them."""
    assert verify_math("4", response).status == "wrong"
