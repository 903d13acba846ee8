"""The pages: a start page, lists with filters, and one for each row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from llmpipe.algo.packed_text import PackedReader
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.markup import Html, el, join, text
from llmpipe.core.records import Rollout, Verdict
from llmpipe.viewer import parts, views
from llmpipe.viewer.library import Library, upstream
from llmpipe.viewer.listings import Wanted
from llmpipe.viewer.mathml import formula, with_math
from llmpipe.viewer.parts import Query
from llmpipe.viewer.query import PAGE, Table, Tables
from llmpipe.viewer.views import facts, section

_KEYS = "/ search · j k choose · Enter open · ← → pages · u up"


class Pages:
    """Makes pages of the artifacts in a library. ``base`` is the path they are served under."""

    def __init__(self, library: Library, base: str, tokenizer: str | None = None) -> None:
        """Start DuckDB.

        Raises:
            UserError: it or latex2mathml is not installed.
        """
        self.library, self._base, self._tokenizer = library, base, tokenizer
        self._tables = Tables()
        formula("x", False)  # now, not in the middle of a page

    def start(self) -> Html:
        """All artifacts of the folder, in the order they were made."""
        rows = [
            el(
                "tr",
                el("td", self._link("list", name, artifact=name), class_="name"),
                el("td", a.manifest.record, class_="short"),
                el("td", f"{a.rows:,}", class_="number"),
                el("td", a.manifest.stage, class_="short"),
                el("td", parts.dropped(a), class_="dim"),
                el("td", a.manifest.attention or parts.figures(a.manifest.figures), class_="dim"),
            )
            for name, a in self.library.refresh().items()
        ]
        head = [el("th", n) for n in ("artifact", "rows are", "rows", "by", "dropped", "figures")]
        table = el("table", el("thead", el("tr", head)), el("tbody", rows), class_="list")
        return self._page("Artifacts", table)

    def rows(self, query: Query) -> Html:
        """Rows of an artifact, those that the query wants.

        Raises:
            UserError: no such artifact, or it can't be read.
        """
        artifact, table, wanted = self._asked(query)
        total = table.count(wanted)
        pages = max(1, -(-total // PAGE))
        page = min(max(_whole(query.get("page")) or 1, 1), pages)
        rows = table.page(wanted, (page - 1) * PAGE)
        kept = _kept(query)

        def to(n: int) -> str:
            return self._url("list", **{**kept, "page": str(n)})

        pager = el(
            "nav",
            el("a", "← before", href=to(page - 1), rel="prev") if page > 1 else None,
            el("span", f"page {page:,} of {pages:,}"),
            el("a", "next →", href=to(page + 1), rel="next") if page < pages else None,
            class_="pager",
        )
        said = f"{total:,} of {artifact.rows:,} rows" if wanted.any else f"{total:,} rows"
        body = join(
            parts.head(artifact),
            parts.notes(table.no_problems, table.no_rollouts),
            parts.scores(artifact),
            self._filters(table, query),
            el("p", said, class_="note", id="count"),
            self._rows(table, rows, kept),
            pager if pages > 1 else None,
        )
        return self._page(query["artifact"], body, up=self._url(""))

    def row(self, query: Query) -> Html:
        """One row, with what it is about.

        Raises:
            UserError: no such artifact or row, or it can't be read.
        """
        artifact, table, wanted = self._asked(query)
        n = _whole(query.get("n"))
        if n is None:
            raise UserError("a row is said by its number, n")
        row = table.row(n)
        kept = _kept(query)
        math = {"math": "1"} if query.get("math") else {}
        ends = [
            el("a", word, href=self._url("row", **{**kept, **math, "n": str(m)}), rel=rel)
            for m, word, rel in zip(
                table.beside(wanted, n), ("← before", "next →"), ("prev", "next"), strict=True
            )
            if m is not None
        ]
        (main, aside), *_ = self.details(table, [row], with_math if math else text)
        more = self._more(table, row, query, n)
        link = self._problem_link(table, row.get("problem_id"))
        up = self._url("list", **{**kept, "page": kept.get("page", "1")})
        toggle = None
        if artifact.manifest.record in ("Rollout", "Verdict"):
            other = {} if math else {"math": "1"}
            word = "responses as they are written" if math else "responses with formulas drawn"
            toggle = el("a", word, href=self._url("row", **{**kept, **other, "n": str(n)}))
        nav = el("nav", ends, toggle, class_="pager") if ends or toggle else None
        body = el("div", el("main", main, more), el("aside", aside, link), class_="detail")
        title = f"{query['artifact']} · row {n:,}"
        return self._page(title, join(nav, body), up=up)

    def problem(self, query: Query) -> Html:
        """A problem by its id, with the answers to it.

        Raises:
            UserError: no such artifact or problem.
        """
        artifact, table, _ = self._asked(query)
        found = table.about([query.get("id", "")])
        if artifact.manifest.record != "Problem" or not found:
            raise UserError(f"{query['artifact']} has no problem {query.get('id')!r}")
        return self.row({**query, "n": str(found[0]["n"])})

    def details(
        self, table: Table, rows: Sequence[Mapping[str, Any]], words: views.Words = text
    ) -> Iterator[tuple[Html, Html | None]]:
        """Each of a table's rows, and the facts about it."""
        problems: dict[str, Mapping[str, Any]] = {}
        rollouts: dict[tuple[str, int], Mapping[str, Any]] = {}
        if table.problems:
            asked = self._tables.table(table.problems).about([row["problem_id"] for row in rows])
            problems = {row["id"]: row for row in asked}
        if table.rollouts:
            samples = sorted({row["sample"] for row in rows})
            of = self._tables.table(table.rollouts)
            sampled = of.about([row["problem_id"] for row in rows], samples)
            rollouts = {(row["problem_id"], row["sample"]): row for row in sampled}
        for row in rows:
            problem = row.get("problem_id", "")
            rollout = rollouts.get((problem, row.get("sample", 0)))
            yield self._detail(table, row, problems.get(problem), rollout, words)

    def _detail(
        self,
        table: Table,
        row: Mapping[str, Any],
        asked: Mapping[str, Any] | None,
        sampled: Mapping[str, Any] | None,
        words: views.Words,
    ) -> tuple[Html, Html | None]:
        record = table.artifact.manifest.record
        if record == "Problem":
            return views.problem(row)
        if record == "Conversation":
            return self._conversation(table.artifact, row)
        if record == "Pair":
            return views.pair(row)
        if record == "PackedRow":
            return self._packed(table.artifact, row)
        if record == "TrainStep":
            return join(facts((k.replace("_", " "), v) for k, v in row.items())), None
        if record == "ProblemScore":
            about, about_it = views.problem(asked) if asked else (None, None)
            counts = facts((k.replace("_", " "), row[k]) for k in _COUNTS)
            return join(about, views.votes(row)), join(counts, about_it)
        drawn, judged, extracted, notes = None, None, None, [table.no_problems]
        rollouts: Artifact | None = table.artifact
        if record == "Verdict":
            drawn, judged = views.verdict(row, asked)
            extracted = row["extracted"]
            notes.append(table.no_rollouts)
            rollouts = table.rollouts
        else:
            sampled = row
        main, aside = None, None
        if rollouts and sampled:
            examples = _examples(rollouts, asked)
            main, aside = views.rollout(sampled, examples, extracted, words)
        above = views.asked(asked) if asked else None
        return join(parts.notes(*notes), above, drawn, main), join(judged, aside)

    def whole(self, artifact: Artifact, limit: int) -> tuple[str, list[dict[str, Any]], Html]:
        """The first rows on one page, each folded: its title, what is filtered by, and the page.

        Raises:
            UserError: they can't be read.
        """
        table = self._table(artifact)
        values = table.facets(limit)
        title = f"{artifact.path.name} · llmpipe"
        left = artifact.rows - len(values)
        said = f"{len(values):,} of {artifact.rows:,} rows"
        note = (
            f"{left:,} rows are left out: this page has the first {len(values):,}." if left else ""
        )
        rows = []
        lines = table.page(Wanted(), 0, limit)
        shown = self.details(table, table.rows(0, limit))
        for line, (main, aside) in zip(lines, shown, strict=True):
            names = [n for n in table.listing.columns if line[n] is not None]
            cells = [parts.brief(n, line[n]) for n in names]
            rows.append(
                el(
                    "details",
                    el("summary", el("span", f"{line['n']:,}", class_="number"), cells),
                    el("div", el("main", main), el("aside", aside), class_="detail"),
                    class_="row",
                )
            )
        form = el(
            "form", parts.filters(table, {}), el("button", "clear", type="reset"), class_="filters"
        )
        top = el(
            "header",
            el("span", "llmpipe", class_="home"),
            el("h1", artifact.path.name),
            el("span", "/ search · j k choose · Enter open", class_="keys"),
        )
        count = el("p", said, class_="note", id="count")
        about = join(parts.head(artifact), parts.scores(artifact), parts.notes(note))
        return title, values, join(top, about, form, count, rows)

    def _conversation(self, artifact: Artifact, row: Mapping[str, Any]) -> tuple[Html, Html | None]:
        if not row.get("loss_mask"):
            return views.conversation(row)
        reader, note = self._reader(artifact)
        main, aside = views.conversation(row)
        return join(parts.notes(note), main, views.masked(row, reader)), aside

    def _packed(self, artifact: Artifact, row: Mapping[str, Any]) -> tuple[Html, Html | None]:
        reader, note = self._reader(artifact)
        main, aside = views.packed(row, reader)
        return join(parts.notes(note), main), aside

    def _reader(self, artifact: Artifact) -> tuple[PackedReader | None, str]:
        """What reads an artifact's tokens, or None and why they stay numbers."""
        try:
            return _reader(str(artifact.path), artifact.digest, self._tokenizer), ""
        except UserError as e:
            return None, f"Numbers only: {e.message}"

    def _problem_link(self, table: Table, problem: str | None) -> Html | None:
        name = self.library.name(table.problems) if table.problems else None
        if name is None or problem is None:
            return None
        url = self._url("problem", artifact=name, id=problem)
        return el("p", el("a", "All answers to this problem", href=url))

    def _more(self, table: Table, row: Mapping[str, Any], query: Query, n: int) -> Html | None:
        """On a problem's page the answers to it, judged if there are verdicts."""
        record = table.artifact.manifest.record
        if record == "Problem":
            problems, problem, own = table.artifact, row["id"], True
        elif record == "ProblemScore" and table.problems:
            problems, problem, own = table.problems, row["problem_id"], False
        else:
            return None
        sources = self.library.made_of(problems, Verdict)
        if not own:
            judged, _ = upstream(table.artifact, Verdict)
            sources = [judged] if judged else []
        sources = sources or self.library.made_of(problems, Rollout)
        names = [name for a in sources if (name := self.library.name(a))]
        if not names:
            return None
        chosen = query["answers"] if query.get("answers") in names else names[0]
        here = {**_kept(query), "n": str(n)}
        others = [
            el("a", name, href=self._url("row", **{**here, "answers": name}))
            for name in names
            if name != chosen
        ]
        answers = self._tables.table(self.library.get(chosen))
        status = query.get("of") or None
        every = answers.numbers(Wanted(problem=problem), 0, 1000)
        wanted = Wanted(problem=problem, status=status)
        rows = answers.page(wanted, 0, 1000) if every else []
        chips = [
            el(
                "a",
                word or "all",
                href=self._url("row", **{**here, "answers": chosen, "of": word}),
                class_="chip on" if (status or "") == word else "chip",
            )
            for word in ("", *(value for value, _ in answers.choices("status")))
        ]
        return section(
            f"Answers in {chosen}",
            el("nav", chips, el("span", f"{len(rows)} of {len(every)}"), class_="pager"),
            self._rows(answers, rows, {"artifact": chosen, "problem": problem}, brief=True),
            el("p", "Others: ", others, class_="note") if others else None,
        )

    def _rows(
        self, table: Table, rows: Sequence[Mapping[str, Any]], kept: Query, brief: bool = False
    ) -> Html:
        if not rows:
            return el("p", "No rows match.", class_="empty")
        left_out = {"problem", "gold", "level", "pass rate"} if brief else set()
        names = [n for n in table.listing.columns if n not in left_out]
        names = [n for n in names if any(row[n] is not None for row in rows)]
        lines = []
        for row in rows:
            url = self._url("row", **{**kept, "n": str(row["n"])})
            cells = [parts.cell(name, row[name]) for name in names]
            at = el("td", el("a", f"{row['n']:,}", href=url), class_="number")
            lines.append(el("tr", at, cells))
        head = el("tr", el("th", "row"), [el("th", n.replace("_", " ")) for n in names])
        return el("table", el("thead", head), el("tbody", lines), class_="list rows")

    def _filters(self, table: Table, query: Query) -> Html:
        name = query["artifact"]
        fields_ = [
            el("input", type="hidden", name="artifact", value=name),
            *parts.filters(table, query),
            el("button", "Filter", type="submit"),
            el("a", "clear", href=self._url("list", artifact=name)),
        ]
        return el("form", fields_, action=self._url("list"), method="get", class_="filters")

    def _asked(self, query: Query) -> tuple[Artifact, Table, Wanted]:
        artifact = self.library.get(query.get("artifact", ""))
        return artifact, self._table(artifact), parts.wanted_of(query)

    def _table(self, artifact: Artifact) -> Table:
        judged = []
        if artifact.manifest.record == "Problem":
            judged = self.library.made_of(artifact, Verdict)
        return self._tables.table(artifact, judged[0] if judged else None)

    def _link(self, page: str, word: str, /, **query: str) -> Html:
        return el("a", word, href=self._url(page, **query))

    def _url(self, page: str, /, **query: str) -> str:
        given = urlencode({k: v for k, v in query.items() if v})
        return f"{self._base}/{page}" + (f"?{given}" if given else "")

    def _page(self, title: str, body: Html, up: str | None = None) -> Html:
        static = f"{self._base}/static"
        head = el(
            "head",
            el("meta", charset="utf-8"),
            el("meta", name="viewport", content="width=device-width"),
            el("title", f"{title} · llmpipe"),
            el("link", rel="icon", href=f"{static}/icon.svg"),
            el("link", rel="stylesheet", href=f"{static}/viewer.css"),
            el("script", src=f"{static}/viewer.js", defer=True),
        )
        top = el(
            "header",
            el("a", "llmpipe", href=self._url(""), class_="home"),
            el("h1", title),
            el("a", "up", href=up, rel="up") if up else None,
            el("span", _KEYS, class_="keys"),
        )
        return join(Html("<!doctype html>"), el("html", head, el("body", top, body), lang="en"))

    def error(self, said: str) -> Html:
        """A page that says what is wrong."""
        return self._page("Not shown", el("p", said, class_="empty"), up=self._url(""))


_COUNTS = ("n", "correct", "wrong", "no_answer", "truncated", "error")


def _kept(query: Query) -> dict[str, str]:
    """What of a query the next page needs, too."""
    names = ("artifact", "page", *(f.name for f in fields(Wanted)))
    return {k: query[k] for k in names if query.get(k)}


def _whole(value: str | None) -> int | None:
    return int(value) if value and re.fullmatch(r"\d{1,15}", value) else None


@lru_cache(maxsize=4)
def _reader(path: str, digest: str, tokenizer: str | None) -> PackedReader:
    """What reads the rows of an artifact; ``digest`` changes when they do."""
    return PackedReader(Artifact.open(Path(path)), tokenizer)


def _examples(rollouts: Artifact, asked: Mapping[str, Any] | None) -> int:
    """How many messages of a transcript are worked examples."""
    known = rollouts.manifest.details.get("few_shot_messages") or {}
    return int(known.get(asked["task"] if asked else next(iter(known), ""), 0))
