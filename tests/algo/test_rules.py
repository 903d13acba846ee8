"""Each rule against problems of its kind, and against what only looks like them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo.rules import RULES, Statement, without_options
from llmpipe.algo.rules.options import cut_options


def hits(prompt: str, answer: str = "12") -> str | None:
    """The first rule that speaks up, as the filter asks them."""
    statement = Statement(prompt, answer)
    return next((name for name, rule in RULES.items() if rule(statement) is not None), None)


CHOICE = {
    "in brackets": ("How many legs has a spider? (A) 4 (B) 6 (C) 8 (D) 10", "C"),
    "on lines": ("What is 7 times 6?\nA. 41\nB. 42\nC. 43\nD. 44", "B"),
    "half brackets": ("A jar holds 9 beans and 3 more come in. In total: A) 11 B) 12 C) 13", "(B)"),
    "the ACT's other letters": (
        "A rope of 30 feet is cut in 5. How long is a piece? (F) 4 (G) 5 (H) 6 (J) 7 (K) 8",
        "H",
    ),
    "no spaces": ("Solve $3x=9$.(A)$1$(B)$2$(C)$3$(D)$4$", "C"),
    "as the AMC sets them": (
        r"What is the last digit of $7^{10}$? $\textbf{(A)}\ 1\qquad\textbf{(B)}\ 3\qquad"
        r"\textbf{(C)}\ 7\qquad\textbf{(D)}\ 9\qquad\textbf{(E)}\ 0$",
        r"\textbf{(D)}\ 9",
    ),
    "roman letters": (
        r"Then $x$ equals $\mathrm{(A)}\ 2 \quad \mathrm{(B)}\ 3 \quad \mathrm{(C)}\ 5$",
        r"\text{B}",
    ),
    "bold in Markdown": ("Pick the even one.\n- **A.** 13\n- **B.** 14\n- **C.** 15", "B"),
    "answer with its text": ("Half of 18?\nA) 8\nB) 9\nC) 10", "B) 9"),
    "small letters": ("Which of these is prime? (a) 21 (b) 23 (c) 25 (d) 27", "b"),
    "several right ones": ("Which are even?\nA. 2\nB. 3\nC. 4\nD. 8", "ACD"),
    "separated by commas": ("Which are odd?\nA. 2\nB. 3\nC. 4\nD. 9", "B, D"),
    "true or false": ("A square is a rhombus.\nA. True\nB. False", "A"),
    "Chinese": ("若 $x+3=10$，则 $x=$（    ）\nA. 5\nB. 6\nC. 7\nD. 8", "C"),
    "Chinese stops": ("下列各数中是质数的是（ ）A．9 B．15 C．17 D．21", "C"),
    "Chinese commas": ("小明有7个苹果，吃了3个，还剩（ ）个。A、3 B、4 C、5", "B"),
    "Chinese brackets": ("方程 $2x=8$ 的解是\n（A）2\n（B）3\n（C）4\n（D）5", "C"),
    "the letter alone": ("What is the greatest common divisor of 12 and 18?", "C"),
    "a question about its options": (
        "Which of the following numbers is a multiple of 7? (A) 12 (B) 20 (C) 35 (D) 41",
        "35",
    ),
    "square brackets": ("Then $\\sin 30^\\circ$ is [A] 1/2 [B] 1 [C] 0", "A"),
    "the word": ("Find $x$ if $2x=4$. Option A: 1 Option B: 2 Option C: 3", "B"),
    "bars": ("Solve $2x=4$ | A: 1 | B: 2 | C: 3", "B"),
    "a count of its statements": ("How many are true? (A) 1 (B) 2 (C) 3", "(C)"),
    "no answer": ("Half of 18?\nA) 8\nB) 9\nC) 10", ""),
    "glued together": ("-1和1的平均数是（）A.-1B.0C.1D.2", "B"),
    "glued to a question": ("2+2=( )A.4B.5C.6D.7", "A"),
    "glued to a word": ("Then the colour is(A)red(B)blue(C)green", "B"),
    "glued formulas": ("$y=(A)x(B)2x(C)3x$", "B"),
    "a letter and a gap": ("What is 2+2?\nA 4\nB 5\nC 6\nD 7", "A"),
    "a letter and a dash": ("What has six legs?\nA - an ant\nB - a cow\nC - a hen", "A"),
    "braces": ("What is 2+2? {A} 4 {B} 5 {C} 6", "A"),
    "angle brackets": ("What is 2+2? <A> 4 <B> 5 <C> 6", "A"),
    "Chinese labels": ("2+2等于？（甲）4（乙）5（丙）6（丁）7", "甲"),
    "Chinese labels with stops": ("2+2等于？甲. 4 乙. 5 丙. 6 丁. 7", "甲"),
    "numbers for labels": ("下列哪个是质数？(1) 4 (2) 6 (3) 7 (4) 9", "(3)"),
    "a number that is no option": ("Which of these is prime? (1) 4 (2) 6 (3) 7 (4) 9", "3"),
    "romans for labels": ("Which is prime? (i) 4 (ii) 6 (iii) 7 (iv) 9", "(iii)"),
    "told to choose behind the list": (
        "Half of 18? (A) 8 (B) 9 (C) 10. Choose the correct answer.",
        "9",
    ),
    "a LaTeX list": (
        r"Twice 6 is \begin{enumerate}[(A)] \item 10 \item 12 \item 14 \end{enumerate}",
        "B",
    ),
}


@pytest.mark.parametrize("case", CHOICE)
def test_multiple_choice(case: str) -> None:
    assert hits(*CHOICE[case]) == "multiple_choice"


VALUES = {
    "AMC": (
        r"What is the sum of the first $9$ odd numbers? $\textbf{(A)}\ 72\qquad\textbf{(B)}\ 80"
        r"\qquad\textbf{(C)}\ 81\qquad\textbf{(D)}\ 90$",
        "81",
        "What is the sum of the first $9$ odd numbers?",
    ),
    "lines": ("How much is 15% of 80?\n\n(A) 10\n(B) 12\n(C) 14", "12", "How much is 15% of 80?"),
    "options are announced": (
        "A car goes 60 km in 45 minutes. How fast is it?\n"
        "Options:\nA: 70 km/h\nB: 80 km/h\nC: 90 km/h",
        "80 km/h",
        "A car goes 60 km in 45 minutes. How fast is it?",
    ),
    "answer choices": (
        "Find the side of a square of area 49. Answer Choices: (A) 6 (B) 7 (C) 8 (D) 9",
        "7",
        "Find the side of a square of area 49.",
    ),
    "a Python list": ("What is 3 + 9? ['A)11', 'B)12', 'C)13']", "12", "What is 3 + 9?"),
    "small letters": ("What is 3 + 9?\n(a) 11\n(b) 12\n(c) 13", "12", "What is 3 + 9?"),
    "Chinese": ("若 $x+3=10$，则 $x=$（\\quad）\nA. 5\nB. 6\nC. 7", "7", "若 $x+3=10$，则 $x=$"),
    "more text behind": (
        "What is its area?\n(A) 3\n(B) 4\n(C) 5\n\nThe side is 2.",
        "4",
        "What is its area?\n\nThe side is 2.",
    ),
}


VALUES |= {
    "options first": (
        "(A) 4 (B) 5 (C) 6 (D) 8. Select the value of $2+3$.",
        "5",
        "Select the value of $2+3$.",
    ),
    "a sentence behind": (
        "What is the sum? (A) 4 (B) 5 (C) 6 Here the numbers to add are 2 and 3.",
        "5",
        "What is the sum? Here the numbers to add are 2 and 3.",
    ),
    "a line behind": (
        "What is the sum?\n(A) 4\n(B) 5\n(C) 6\nHere the numbers to add are 2 and 3.",
        "5",
        "What is the sum?\nHere the numbers to add are 2 and 3.",
    ),
    "a note behind": (
        "Find $n+1$ if $n^2=16$. $\\textbf{(A)}\\ 4\\quad\\textbf{(B)}\\ 5\\quad\\textbf{(C)}\\ 6$ "
        "(Note: $n$ is a positive integer.)",
        "5",
        "Find $n+1$ if $n^2=16$. (Note: $n$ is a positive integer.)",
    ),
    "a drawing behind": (
        "Find the area. (A) 4 (B) 5 (C) 6 [asy] draw((0,0)--(1,1)); [/asy]",
        "5",
        "Find the area. [asy] draw((0,0)--(1,1)); [/asy]",
    ),
    "a condition behind": (
        "What is $x+3$? (A) 4 (B) 5 (C) 6, where $x=2$.",
        "5",
        "What is $x+3$? where $x=2$.",
    ),
    "a decimal for a fraction": (
        "What is half of 1.5? A) 0.5 B) 0.75 C) 1",
        "3/4",
        "What is half of 1.5?",
    ),
    "sentences for options": (
        "How far is it?\nA. It is 3 km. Not more.\nB. It is 4 km. Not less.\nC. 5 km. Or so.",
        "5 km. Or so.",
        "How far is it?",
    ),
    "a LaTeX list with its end": (
        "How much is $2+3$?\n\\begin{tasks}\n(A) 4\n(B) 5\n(C) 6\n\\end{tasks}\nGive an integer.",
        "5",
        "How much is $2+3$?\nGive an integer.",
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_multiple_choice_with_a_value(case: str) -> None:
    prompt, answer, cut = VALUES[case]
    assert hits(prompt, answer) == "multiple_choice_value"
    options = Statement(prompt, answer).options
    assert options is not None
    assert cut_options(prompt, options) == cut
    assert hits(cut, answer) is None


@pytest.mark.parametrize(
    "prompt",
    [
        "(A) 4 (B) 5 (C) 6",
        "Hello there.\n(A) 4\n(B) 5\n(C) 6",
        "(A) 4 (B) 5 (C) 6. (Note: good luck.)",
    ],
)
def test_options_are_all_there_was(prompt: str) -> None:
    assert hits(prompt, "5") == "multiple_choice_value"
    assert without_options(Statement(prompt, "5")) is None


@pytest.mark.parametrize("stem", ["How much is $2+3$?", "Then $2+3$ equals", "$2+3=$", "2+3等于"])
def test_what_asks_without_its_options_stays(stem: str) -> None:
    assert without_options(Statement(f"{stem} (A) 4 (B) 5 (C) 6", "5")) == stem


PROOF = {
    "show with a colon": (r"Show: for all $n \ge 1$, $1+\frac12+\cdots+\frac1n \ge \ln(n+1)$.", ""),
    "prove that": ("Prove that the sum of two odd numbers is even.", ""),
    "show that": ("Let $n>3$ be odd. Show that $8$ divides $n^2-1$.", "proof"),
    "after a condition": ("If $a+b=0$ show that $a^3+b^3=0$.", ""),
    "after a formula": ("For all positive $x$, $y$ prove $x^2+y^2 \\ge 2xy$.", ""),
    "a list of claims": ("Prove:\n(a) $A \\subset B$,\n(b) $B \\subset A$.", ""),
    "two claims": ("(a) Prove that $f$ is odd. (b) Show that $f$ is bounded.", "proof"),
    "verify": (
        "Verify the identity $\\sin 2x = 2 \\sin x \\cos x$.",
        "$\\sin 2x = 2\\sin x\\cos x$",
    ),
    "by induction": ("Use mathematical induction to prove that $2^n > n$.", ""),
    "a proof is wanted": ("Give a direct proof of the triangle inequality.", ""),
    "disprove": ("Prove or disprove: every subgroup of a cyclic group is cyclic.", "True"),
    "can you": ("A king stands on each square. Can you prove that two of them meet?", ""),
    "with a number in it": ("Show that the remainder of $4^{50}$ by 3 is 1.", "1"),
    "bold": ("**Prove** that there are infinitely many primes.", "proof"),
    "a part of a question": ("(I) 求证：$AB\\parallel CD$；", ""),
    "it is required to": ("It is required to prove that $n^5-n$ is divisible by 30.", "proof"),
    "we have to": ("We have to prove that the two lines meet.", "proof"),
    "nothing but a claim": ("If $a$ divides $b$ and $b$ divides $c$ then $a$ divides $c$.", ""),
    "Chinese": ("已知 $a>b>0$，求证：$a^2>b^2$。", ""),
    "Chinese with a method": ("用反证法证明：$\\sqrt{3}$ 是无理数。", "见解析"),
    "Chinese order": ("设 $n$ 为正整数，试证 $n^3-n$ 能被 6 整除。", "证明略"),
    "Chinese with a value for a gold": ("已知 $a>b>0$，求证：$a^2>b^2$。", "5"),
    "Chinese with a claim for a gold": ("求证 $x=2$ 是方程的根。", "$x=2$"),
    "Chinese beside a doubt": ("$a$ 与 $b$ 是否相等？试证你的结论。", "相等"),
    "Chinese with a colon": ("证明：存在无穷多个素数。", "1"),
    "using": ("Show, using induction, that $n<2^n$.", "1"),
    "by": ("Show by contradiction that $\\sqrt2$ is irrational.", "2"),
    "how": ("Show carefully that $f$ is odd.", "1"),
    "how, in mathematics": ("Show algebraically that $f$ is odd.", "1"),
    "the answer's own proof": (
        "Find all $n$ with $n|6$, and prove your answer is complete.",
        "1, 2, 3, 6",
    ),
    "justified by a proof": ("Is $f$ bounded? Justify your answer with a proof.", "Yes"),
    "no gold beside a question": ("Find the limit, and prove that it is unique.", ""),
    "the gold repeats the claim": (
        "What about the sides? Prove that $a^2+b^2=c^2$.",
        "$a^2+b^2=c^2$",
    ),
}


@pytest.mark.parametrize("case", PROOF)
def test_proof(case: str) -> None:
    assert hits(*PROOF[case]) == "proof"


OPEN = {
    "explain": ("Explain why the harmonic series diverges.", "Because its partial sums grow."),
    "describe": ("Describe the graph of $y = |x|$.", "A V with its tip at the origin."),
    "your own words": ("In your own words, what is a limit?", "What the values come close to."),
    "an example": ("Give an example of an even prime.", "2"),
    "a drawing": ("Sketch the graph of $y = x^2 - 1$.", ""),
    "a story": ("Write a word problem whose answer is 12.", "12"),
    "why": ("A proper fraction has a small top. Why is 7/5 no proper fraction?", "7 is over 5."),
    "any answer": ("Name two numbers that add up to 10.", "Answers will vary."),
    "Chinese": ("请解释为什么三角形内角和是180度。", "略"),
    "Chinese example": ("写出一个大于3的无理数。", "π（答案不唯一）"),
}


@pytest.mark.parametrize("case", OPEN)
def test_open_ended(case: str) -> None:
    assert hits(*OPEN[case]) == "open_ended"


SEVERAL = {
    "brackets with a space": (
        "已知 $a_1=2$。\n(I ) 求 $a_2$；\n（II ）设 $b_n=2a_n$，求 $b_2$。",
        "4, 8",
    ),
    "an estimate": ("（1）估计这批产品的合格率；（2）求 $X$ 的期望。", "0.3; 2"),
    "two discussions": ("(1) 讨论 $f(x)$ 的单调性；(2) 若 $f(x)>0$，求 $a$。", "3"),
    "rules that ask": ("The rules: (1) What is a pawn worth? (2) What is a rook worth?", "1, 5"),
    "letters": ("Let $f(x)=x^2$. (a) Find $f(3)$. (b) Find $f(4)$.", "9, 16"),
    "numbers": ("A box has 3 red balls.\n(1) How many are red?\n(2) How many are not?", "3"),
    "romans": ("(i) Compute $2^5$. (ii) What is $2^6$?", "32"),
    "a numbered list": ("1. What is 2+2?\n2. What is 3+3?", "4 and 6"),
    "half brackets": ("a) What are the odds of heads? b) What are those of tails?", "1/2"),
    "a word for all": ("Find: (i) $2^3$ (ii) $3^2$", "8, 9"),
    "parts": ("Part A: find the area.\nPart B: find the perimeter.", "6"),
    "a LaTeX list": (r"\begin{enumerate}\item Find $x$.\item Find $y$.\end{enumerate}", "3"),
    "one order for all": ("Evaluate each of the following: (a) $3+4$ (b) $5+6$ (c) $7+8$", "7"),
    "also": ("Find the width of the field. Also determine its length.", "30"),
    "two questions, two answers": ("What is the mean? What is the median?", "5, 4"),
    "a proof on the way": ("(1) Prove that $f$ is even. (2) Find its maximum.", "4"),
    "Chinese": ("已知函数 $f(x)$。（1）求 $f(1)$ 的值；（2）求 $f(x)$ 的最小值。", "3"),
    "Chinese circles": ("①求三角形的面积；②求它的周长。", "6"),
    "numbers and half brackets": ("1) find the sum of 2 and 3; 2) find their product", "5"),
    "Chinese numbers": ("已知 $a=1$。（一）求 $a+1$；（二）求 $a+2$。", "2"),
    "Chinese questions": ("已知 $a=1$。第一问：求 $a+1$。第二问：求 $a+2$。", "2"),
    "things to find": ("For 1, 2, 6 find (a) the mean, (b) the median", "3"),
    "letters and stops": ("a. What is 2+3? b. What is 3*4?", "5"),
    "two questions, one answer": (
        "A field is 3 by 4. What is its area? How long is its rim?",
        "12",
    ),
    "Chinese and": ("求 $a$ 的值，并求 $f(x)$ 的最大值。", "2"),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_multi_question(case: str) -> None:
    assert hits(*SEVERAL[case]) == "multi_question"


FIGURE = {
    "in the figure": "In the figure, $AB = 5$ and $BC = 7$. Find $AC$.",
    "as shown": "A ladder leans on a wall as shown. How long is it?",
    "below": "The graph below shows the sales of a shop. What was sold in May?",
    "the diagram shows": "The diagram shows a circle in a square. What share is shaded?",
    "a kind of graph": "The circle graph shows Tom's day. What share of it is sleep?",
    "a number": "Refer to Figure 3. What is the area of the base?",
    "an image": "What is the angle? ![](angle.png)",
    "an image's place": "<image>\nHow many cubes are there?",
    "a table": "Use the table above to find the mean.",
    "Chinese": "如图，在三角形ABC中，AB=3，求BC的长。",
    "Chinese too": "下图是某校学生的身高统计，求平均数。",
    "Chinese table": "根据下表中的数据，求中位数。",
}


@pytest.mark.parametrize("case", FIGURE)
def test_needs_figure(case: str) -> None:
    assert hits(FIGURE[case]) == "needs_figure"


ANSWERS = {
    "blank": ("  ", "answer_empty"),
    "not found": ("notfound", "answer_empty"),
    "a dash": ("-", "answer_empty"),
    "dots": ("...", "answer_empty"),
    "dollars": ("$$", "answer_empty"),
    "an empty box": (r"\boxed{}", "answer_empty"),
    "an empty box in dollars": (r"$\boxed{ }$", "answer_empty"),
    "an empty set": (r"\varnothing", "answer_impossible"),
    "an empty set in dollars": (r"$\emptyset$", "answer_impossible"),
    "a proof, where a value is asked for": ("proof", "answer_empty"),
    "none": ("None", "answer_impossible"),
    "undefined": (r"\text{undefined}", "answer_impossible"),
    "no solution": ("There is no solution.", "answer_impossible"),
    "no real ones": ("No real solutions", "answer_impossible"),
    "no limit": ("The limit does not exist.", "answer_impossible"),
    "Chinese none": ("无解", "answer_impossible"),
    "Chinese nothing": ("不存在", "answer_impossible"),
    "a sentence": ("The team with more wins has the better mean.", "answer_prose"),
    "a Chinese sentence": ("因为两直线平行，所以同位角相等，角平分线也平行", "answer_prose"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_that_are_none(case: str) -> None:
    answer, rule = ANSWERS[case]
    assert hits("What is the value of $x$ in $x+1=2$?", answer) == rule


KEPT = {
    "arguments of a function": (
        r"$\tau$ satisfies all of the following: (1) If $a\le b$ then $\tau(a)\le\tau(b)$. (2) If "
        r"$c>d$, then $\tau (c+d-cd)=\tau (c)+\tau (d)$. Find all values of $\tau(-1)$.",
        r"$(-\infty, 0]$",
    ),
    "probabilities of events": (
        "The events below are independent: P(A)=0.3, P(B)=0.4, P(C)=0.5. Find P(A or B or C).",
        "0.79",
    ),
    "operations of a game": (
        "A move is one of the following operations:\n\n(1) Choose a number $2^j$ and put it into "
        "an empty cell.\n\n(2) Choose two cells with the same number, and erase one.\n\n"
        "Determine the maximum number of moves.",
        "200293447",
    ),
    "operations in Chinese": (
        "每次可以进行下列操作：（1）求出两数之和并擦去；（2）写出一个新的数。最少要多少次？",
        "5",
    ),
    "a sum": ("What is 1 + 1?", "2"),
    "a proven prime": ("Let $p$ be a proven prime below 20. Find the largest $p$.", "19"),
    "records show": ("Records show that 3 of 4 buses are late. How many of 20 are?", "15"),
    "show your work": ("Compute $3^4$. Show your work.", "81"),
    "with proof": ("Determine, with proof, the least $n$ for which $n! > 1000$.", "7"),
    "justify": ("For how many $n$ is $n^2<50$? Justify your answer.", "15"),
    "a proof and a value": ("Show that $ABC$ is right-angled and find its area.", "24"),
    "the value then the proof": ("Find the maximum of $xy$ and prove that it is attained.", "4"),
    "a value by proof": ("Prove that $f$ is constant. What is $f(7)$?", "3"),
    "he has to": ("Sam has to prove that he is 18. How old is he in 2021, if born in 2001?", "20"),
    "proved": ("A clerk proved that 3 of the 12 bills are false. How many are not?", "9"),
    "it can be shown": ("It can be shown that $a_n \\to L$. Find $L$ if $a_n = 2 + 1/n$.", "2"),
    "check your answer": ("Verify your answer after solving $x+2=5$.", "3"),
    "prove your claim": ("Determine whether it converges and prove your claim.", "converges"),
    "no need": ("You need not prove that it exists. Find the limit of $1/n$.", "0"),
    "nobody has to": ("You don't have to prove it. Find the limit of $1/n$.", "0"),
    "Chinese: no need": ("无需证明，直接写出 $x+1=3$ 的解。", "2"),
    "Chinese: papers": ("办理居住证明2份，收入证明3份，共需几份？", "5"),
    "Chinese: from hearsay": ("他向老师求证过3次，每次2分钟，共多少分钟？", "6"),
    "Chinese: made sure of": ("经多方求证，共有3人，每人5元，共多少？", "15"),
    "a question twice": ("How many apples are left? What is the answer?", "8"),
    "Chinese: who is tallest": ("甲、乙、丙三人，甲比乙高，乙比丙高，谁最高？", "甲"),
    "Chinese: who lies": ("甲：乙在说谎。乙：丙在说谎。丙：他们都说谎。谁说真话？", "乙"),
    "how many statements": (
        "How many of the following are prime? (1) 5 (2) 7 (3) 8 (4) 9",
        "2",
    ),
    "angles": (
        "Three angles of a quadrilateral are\nA: 100\nB: 110\nC: 70\n\nWhat is the fourth?",
        "80",
    ),
    "angles behind": ("The fourth angle of a quadrilateral with\nA: 100\nB: 110\nC: 70", "80"),
    "lettered conditions": (
        "Find the integer such that A) it is even B) it is more than 3 C) it is less than 6",
        "4",
    ),
    "lettered inequalities": ("Find $x$ with A) $x>3$ B) $x<5$ C) $x$ an integer", "4"),
    "a graph shows that": ("The graph shows that sales doubled from 4. What are they now?", "8"),
    "figure skating": ("In the figure skating final 6 judges give 5 each. What is the sum?", "30"),
    "an example": ("Give an example: what is the smallest prime greater than 20?", "23"),
    "explain and a question": ("Explain your answer: what is $5\\cdot5$?", "25"),
    "an essay": ("Write an essay of 500 words at 25 words a minute, how long is that?", "20"),
    "find a sum": ("Find (1) + (2) + (3).", "6"),
    "a remark that asks": ("Did you know? Cats have 4 legs. How many have 7 cats?", "28"),
    "Chinese: an identity card": ("身份证明上的年份是1990，2010年他多少岁？", "20"),
    "Chinese: and a value": ("证明 $AB \\perp CD$，并求 $AB$ 的长。", "5"),
    "which of the following": (
        "Which of the following is the best estimate of $19 \\cdot 21$?",
        "400",
    ),
    "a set": ("Let $A$ and $B$ be sets with $|A|=3$, $|B|=4$. Find $|A \\times B|$.", "12"),
    "plans": ("Plan A: 5 dollars. Plan B: 6 dollars. Plan C: 9 dollars. What do all cost?", "20"),
    "statements": (
        "(A) All cats purr. (B) Some cats purr. (C) No cat purrs. How many can be true at once?",
        "2",
    ),
    "machines": (
        "Machine A. makes 3 a day. Machine B. makes 4. Machine C. makes 5. How many?",
        "12",
    ),
    "times": ("At 9 A.M. a bus leaves B. At 11 A.M. it is at C. How long was that?", "2 hours"),
    "points": ("The points are A: (0,0), B: (4,0), C: (0,3). Find the area of $ABC$.", "6"),
    "who": ("Exactly one of A, B and C lies. A says that B lies. Who lies if C is honest?", "B"),
    "(a) and (b)": ("If (a) and (b) are true, how many of the four are? (a) is even.", "2"),
    "an interval": ("How many integers lie in the interval (1, 2) or in (2, 9)?", "6"),
    "a point": ("Find the distance from (1) to (2, 0) and (3, 4).", "5"),
    "conditions": (
        "Find all $f$ such that: (1) $f$ is linear; (2) $f(0)=1$; (3) $f(1)=4$.",
        "$3x+1$",
    ),
    "conditions first": (
        "(i) $f(x)>0$ for all $x$. (ii) $f(2)=9$, $f(x+y)=f(x)f(y)$. Find $f(1)$.",
        "3",
    ),
    "one system": ("Solve the following system: (1) $x+y=3$ (2) $x-y=1$.", "(2, 1)"),
    "two values": ("Find $x$ and $y$ with $x+y=5$ and $x-y=1$.", "(3, 2)"),
    "an aside": ("Tom also has 3 pens. How many has he and Ann, who has 4?", "7"),
    "a question and a remark": ("Who'd have thought? 7 cats have how many legs?", "28"),
    "explain beside a value": ("What is $2^{10}$? Explain your reasoning.", "1024"),
    "explain if": ("Compute the limit of $1/n$. If it does not exist, explain why.", "0"),
    "describe with a formula": ("Describe all functions whose derivative is $2x$.", "$x^2+C$"),
    "a resulting figure": ("A square is cut in 2. What is the area of the resulting figure?", "2"),
    "figures that are digits": ("Give $\\pi$ to 3 significant figures.", "3.14"),
    "a picture that hangs": (
        "A picture is 8 inches wide, with a 1 inch frame. How wide is it?",
        "10",
    ),
    "a graph": ("Find the area under the graph of $y=x$ from 0 to 4.", "8"),
    "a drawn figure": (
        "In the figure, find the area. [asy] draw((0,0)--(3,0)--(0,4)--cycle); [/asy]",
        "6",
    ),
    "a table in the text": (
        "Use the table below.\n| x | y |\n|---|---|\n| 1 | 3 |\nFind $y$ at 1.",
        "3",
    ),
    "a LaTeX table": (
        "The table below holds $f$. \\begin{array}{cc}1&2\\end{array} Find $f(1)$.",
        "2",
    ),
    "Chinese: books": ("图书馆有图书480本，借出120本，还剩多少本？", "360"),
    "Chinese: a map": ("在比例尺是1:300的地图上量得水渠长40厘米，实际长多少米？", "120"),
    "Chinese: a graph": ("函数 $y=x^2$ 的图象与直线 $y=4$ 有多少个交点？", "2"),
    "Chinese: a list": ("甲、乙、丙三人共有30元，平均每人多少元？", "10"),
    "prices": ("A pen costs $3 and a book costs $5. How much for both?", "8"),
    "no": ("Is 91 prime?", "No"),
    "words": ("Which day follows Monday?", "Tuesday"),
    "several words": ("Who won?", "Anna and Bertha"),
    "a unit": ("How big is it?", r"$12 \text{ square feet per hour}$"),
    "a named point": (r"Which vertex of the square $ABCD$ is opposite $A$?", "C"),
    "hexadecimal": ("Write fourteen in hexadecimal.", "E"),
    "an empty set": ("What is $\\{1\\} \\cap \\{2\\}$?", r"\emptyset"),
    "an answer with a constant": ("Find the antiderivative of $2x$.", "$x^2+C$"),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_mention_is_no_match(case: str) -> None:
    assert hits(*KEPT[case]) is None


@given(st.text(max_size=200), st.text(max_size=40))
def test_any_text_is_judged(prompt: str, answer: str) -> None:
    for rule in RULES.values():
        detail = rule(Statement(prompt, answer))
        assert detail is None or isinstance(detail, str)


@given(
    st.lists(st.sampled_from(["(A) ", "(B) ", "C. ", "$", "3 ", "\n\n", "x?", "(a)"]), max_size=12)
)
def test_what_is_cut_was_there(pieces: list[str]) -> None:
    prompt = "".join(pieces)
    options = Statement(prompt, "3").options
    if options:
        assert 0 <= options.start < options.end <= len(prompt)
        assert len(cut_options(prompt, options)) < len(prompt)
