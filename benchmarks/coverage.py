"""How often the 95 % intervals hold a truth that is known, beside a percentile bootstrap.

    python benchmarks/coverage.py [--runs 2000] [--quick]

Pass rates are drawn from a Beta, or are 0 for three problems of ten ("mixed"); so many samples are
drawn of each, and pass@k is measured with its two intervals. `new` is how often (in percent) the
interval for new problems holds the mean over all problems of the kind, `here` how often the one for
these problems sampled anew holds their own; `boot` is the percentile bootstrap over problems, which
most harnesses have. The widths are means. With so many runs a share is good to about 1 % (two
standard errors); 93 to 97 is as it should be.

Then the same of majority@k, for right answers against three wrong ones, and of paired differences;
and how long 10,000 paired resamples of 5,000 problems take.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from llmpipe.algo.majority import Ballot
from llmpipe.algo.metrics import Counts, measure, measure_majority, terms
from llmpipe.algo.paired import difference, resampled_means
from llmpipe.algo.passk import AVERAGE, COVERAGE, Figure, pass_at, pass_hat

Rates = Callable[[np.random.Generator, Any], np.ndarray]


def beta(a: float, b: float) -> Rates:
    return lambda rng, size: rng.beta(a, b, size)


KINDS: dict[str, Rates] = {
    "Beta(0.5, 0.5)": beta(0.5, 0.5),
    "Beta(2, 2)": beta(2, 2),
    "Beta(0.3, 3)": beta(0.3, 3),
    "Beta(5, 1)": beta(5, 1),
    "Beta(1, 9)": beta(1, 9),
    "mixed": lambda rng, size: np.where(rng.random(size) < 0.3, 0.0, rng.beta(8, 1, size)),
}


def truth(figure: Figure, p: np.ndarray, n: int) -> np.ndarray:
    """The figure of a problem in the long run, given its pass rate."""
    if figure is AVERAGE:
        return p
    if figure is COVERAGE:
        return 1 - (1 - p) ** n
    return p**figure.k if figure.name.startswith("pass^") else 1 - (1 - p) ** figure.k


def counted(kind: str, problems: int, n: int, figure: Figure, runs: int) -> str:
    rng = np.random.default_rng(0)
    draw = KINDS[kind]
    of_kind = float(np.mean(truth(figure, draw(rng, 4_000_000), n)))
    held = np.zeros(3)
    widths = np.zeros(3)
    for run in range(runs):
        p = draw(rng, problems)
        counts = Counts(np.full(problems, n), rng.binomial(n, p))
        found = measure(figure, counts)
        values = figure.values(counts.n, counts.c)
        boot = np.quantile(resampled_means(values, 1000, seed=run), (0.025, 0.975))
        here = float(truth(figure, p, n).mean())
        for i, (low, high, value) in enumerate(
            [
                (found["low"], found["high"], of_kind),
                (found["low_here"], found["high_here"], here),
                (*boot, of_kind),
            ]
        ):
            held[i] += low <= value <= high
            widths[i] += high - low
    new, these, boot_held = 100 * held / runs
    wide = widths / runs
    return (
        f"{kind:15} {problems:4} {n:3} {figure.name:9} {new:6.1f} {these:6.1f} {boot_held:6.1f}   "
        f"{wide[0]:.3f} {wide[1]:.3f} {wide[2]:.3f}"
    )


def voted(kind: str, problems: int, n: int, k: int, runs: int) -> str:
    rng = np.random.default_rng(0)
    draw = KINDS[kind]

    def asked(count: int) -> list[np.ndarray]:
        right, wrong = draw(rng, count), rng.dirichlet((1, 1, 1), count)
        return [np.array([p, *((1 - p) * w)]) for p, w in zip(right, wrong, strict=True)]

    def ballots(problems: list[np.ndarray]) -> list[Ballot]:
        found = []
        for chances in problems:
            right, *wrong = map(int, rng.multinomial(n, chances))
            found.append(Ballot(n, (right,) if right else (), tuple(w for w in wrong if w)))
        return found

    def elected(problems: list[np.ndarray], times: int) -> float:
        """In the long run, by elections of k."""
        votes = [rng.multinomial(k, chances, size=times) for chances in problems]
        shares = []
        for cast in votes:
            best = cast == cast.max(axis=1, keepdims=True)
            shares.append((best[:, 0] / best.sum(axis=1)).mean())
        return float(np.mean(shares))

    of_kind = elected(asked(40_000), 20)
    new = here = 0
    for _ in range(runs):
        problem = asked(problems)
        found = measure_majority(k, ballots(problem))
        new += found["low"] <= of_kind <= found["high"]
        here += found["low_here"] <= elected(problem, 2000) <= found["high_here"]
    name = f"maj@{k}"
    return f"{kind:15} {problems:4} {n:3} {name:9} {100 * new / runs:6.1f} {100 * here / runs:6.1f}"


def paired(kind: str, problems: int, n: int, k: int, runs: int) -> str:
    rng = np.random.default_rng(0)
    draw = KINDS[kind]
    figure = pass_at(k)

    def models(size: int) -> tuple[np.ndarray, np.ndarray]:
        first = draw(rng, size)
        return first, 0.8 * first + 0.2 * rng.beta(2, 1, size)

    gain = [truth(figure, p, n) for p in models(4_000_000)]
    of_kind = float((gain[1] - gain[0]).mean())
    new = here = boot = 0
    for _ in range(runs):
        both = models(problems)
        first, second = (
            terms(figure, Counts(np.full(problems, n), rng.binomial(n, p))) for p in both
        )
        assert first is not None
        assert second is not None
        found = difference(first, second, resamples=1000)
        new += found.low <= of_kind <= found.high
        own = float((truth(figure, both[1], n) - truth(figure, both[0], n)).mean())
        assert found.low_here is not None
        here += found.low_here <= own <= found.high_here
        boot += found.bootstrap_low <= of_kind <= found.bootstrap_high
    shares = " ".join(f"{100 * x / runs:6.1f}" for x in (new, here, boot))
    return f"{kind:15} {problems:4} {n:3} {figure.name:9} {shares}   (difference)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="pass@1 and pass@8 alone")
    given = parser.parse_args()
    print(
        f"{'rates':15} {'P':>4} {'n':>3} {'figure':9} {'new':>6} {'here':>6} {'boot':>6}   widths"
    )
    some = [pass_at(1), pass_at(8)]
    if not given.quick:
        some += [AVERAGE, COVERAGE, pass_hat(8)]
    for kind in KINDS:
        for problems in (30, 500):
            for n in (8, 64):
                for figure in some:
                    print(counted(kind, problems, n, figure, given.runs), flush=True)
    for kind in list(KINDS)[:3]:
        for problems in (30, 500):
            for n, k in ((8, 8), (64, 8), (64, 64)):
                runs = max(50, given.runs // (4 if problems == 30 else 20))
                print(voted(kind, problems, n, k, runs), flush=True)
    for kind in list(KINDS)[:3]:
        for problems in (30, 500):
            for k in (1, 8):
                print(paired(kind, problems, 8, k, given.runs), flush=True)
    values = np.random.default_rng(0).normal(size=5000)
    began = time.process_time()
    resampled_means(values, 10_000)
    print(f"10,000 resamples of 5,000 problems: {time.process_time() - began:.3f} CPU seconds")


if __name__ == "__main__":
    main()
