"""Which rows of an artifact are wanted, answered from its Parquet files by DuckDB.

Nothing is loaded beforehand: a page is a query that reads the columns and row groups it needs. The
SQL is made of fixed pieces, here and in `listings`, and of row numbers; file names and whatever a
reader asks for are parameters.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.libraries import needs
from llmpipe.core.records import Problem, Record, Rollout
from llmpipe.viewer.library import upstream
from llmpipe.viewer.listings import LISTINGS, Wanted

if TYPE_CHECKING:
    import duckdb

V = TypeVar("V")

PAGE = 50  # rows
_MOST_CHOICES = 200  # of a level or a source


_ROWS = "read_parquet(${}, hive_partitioning=false)"
_JOINS = {
    "p": f" LEFT JOIN {_ROWS.format('p')} p ON p.id = t.problem_id",
    "r": f" LEFT JOIN {_ROWS.format('r')} r ON r.problem_id = t.problem_id AND r.sample = t.sample",
    "s": " LEFT JOIN (SELECT problem_id, count(*) FILTER (status = 'correct')"
    " / nullif(count(*) FILTER (status <> 'error'), 0) AS rate"
    f" FROM {_ROWS.format('v')} GROUP BY problem_id) s ON s.problem_id = {{problem}}",
}


# It may take part of a shared machine, and may fetch nothing.
_SETTINGS: Mapping[str, Any] = {
    "threads": min(8, os.cpu_count() or 1),
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",
}


class Tables:
    """The artifacts' rows. One for all threads: each question has a cursor of its own."""

    def __init__(self) -> None:
        """Start DuckDB, which holds nothing.

        Raises:
            UserError: it is not installed.
        """
        with needs("duckdb", "pip install 'llmpipe[view]'"):
            import duckdb
        self._database = duckdb.connect(":memory:", config=dict(_SETTINGS))
        self.counts: dict[tuple[str, Wanted], int] = {}
        self.choices: dict[tuple[str, str], list[tuple[str, int]]] = {}
        self._lock = threading.Lock()

    def table(self, artifact: Artifact, judged: Artifact | None = None) -> Table:
        """The rows of an artifact; problems have the pass rates of the verdicts ``judged``.

        Raises:
            UserError: they have no columns that are known here.
        """
        return Table(self, artifact, judged)

    def ask(self, sql: str, values: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
        """Run a query.

        Raises:
            UserError: the rows can't be read.
        """
        import duckdb

        used = {name: values[name] for name in re.findall(r"\$(\w+)", sql)}
        try:
            return self._database.cursor().execute(sql, used)
        except duckdb.Error as e:
            raise UserError(f"the rows can't be read: {str(e).splitlines()[0]}") from None

    def remember(self, kept: dict[Any, V], key: Any, value: V) -> V:
        """Keep an answer in ``counts`` or ``choices``."""
        with self._lock:
            if len(kept) > 1000:
                kept.clear()
            kept[key] = value
        return value


class Table:
    """One artifact's rows, numbered from 0."""

    def __init__(self, tables: Tables, artifact: Artifact, judged: Artifact | None) -> None:
        record = artifact.manifest.record
        if record not in LISTINGS:
            raise UserError(f"{artifact.path} is in another tool's layout: see its README.md")
        self.artifact, self.listing, self._tables = artifact, LISTINGS[record], tables
        self.problems, self.no_problems = self._behind(Problem)
        self.rollouts, self.no_rollouts = self._behind(Rollout)
        beside = {"t": artifact, "p": self.problems, "r": self.rollouts, "v": judged}
        if record == "Verdict":
            beside["v"] = artifact
        there = {name: found for name, found in beside.items() if found}
        self._files = {n: [_literal(str(f)) for f in a.data_files()] for n, a in there.items()}
        self._key = "\0".join(f"{n}={a.path}:{a.digest}" for n, a in there.items())
        self._starts = _starts(self._key, tuple(str(f) for f in artifact.data_files()))
        self._number = (
            f"list_extract([{', '.join(map(str, self._starts))}]::BIGINT[], "
            "t.file_index::BIGINT + 1) + t.file_row_number::BIGINT"
        )

    def _behind(self, record: type[Record]) -> tuple[Artifact | None, str]:
        """The problems or rollouts of these rows, where they are needed beside them."""
        own = self.artifact.manifest.record
        wanted = {"Rollout": (Problem,), "ProblemScore": (Problem,), "Verdict": (Problem, Rollout)}
        return upstream(self.artifact, record) if record in wanted.get(own, ()) else (None, "")

    def count(self, wanted: Wanted) -> int:
        """How many rows are as wanted; counted once."""
        if not wanted.any:
            return self.artifact.rows
        key = (self._key, wanted)
        known = self._tables.counts.get(key)
        if known is None:
            where, values = self._where(wanted)
            found = self._ask(f"SELECT count(*) FROM {self._from(where)}{where}", values).fetchone()
            known = self._tables.remember(self._tables.counts, key, found[0] if found else 0)
        return known

    def choices(self, over: str) -> list[tuple[str, int]]:
        """The values of a filter ("status" or "level") and how many rows have each."""
        column = {"status": self.listing.status, "level": self.listing.level}[over]
        if column is None:
            return []
        key = (self._key, over)
        known = self._tables.choices.get(key)
        if known is None:
            sql = (
                f"SELECT {column}, count(*) FROM {self._from(column)} WHERE {column} IS NOT NULL "
                f"GROUP BY 1 ORDER BY 1 LIMIT {_MOST_CHOICES}"
            )
            found = self._ask(sql, {}).fetchall()
            known = self._tables.remember(self._tables.choices, key, found)
        return known

    def page(self, wanted: Wanted, offset: int, limit: int = PAGE) -> list[dict[str, Any]]:
        """The wanted rows from one of them on, in their order: number ``n`` and the columns."""
        shown = self.listing.columns
        columns = ", ".join(f'{sql} AS "{name}"' for name, sql in shown.items())
        problem = self.listing.problem or "NULL"
        if not wanted.any:
            offset = max(0, min(offset, self.artifact.rows))
            where = self._between(offset, min(offset + limit, self.artifact.rows))
        else:
            # Numbers first, then what is shown of them: long texts are read for one page only.
            numbers = self.numbers(wanted, offset, limit)
            if not numbers:
                return []
            where = " OR ".join(self._between(a, b) for a, b in _runs(numbers))
        sql = (
            f"SELECT {self._number} AS n, {problem} AS problem_id, {columns} "
            f"FROM {self._from(columns)} WHERE {where} ORDER BY n"
        )
        rows = self._ask(sql, {}).fetchall()
        return [dict(zip(("n", "problem_id", *shown), row, strict=True)) for row in rows]

    def facets(self, limit: int) -> list[dict[str, Any]]:
        """What the filters are over, of the first rows: status, level, rate and length."""
        over = self.listing
        columns = {n: getattr(over, n) for n in ("status", "level", "rate", "length")}
        shown = ", ".join(f"{sql or 'NULL'} AS {name}" for name, sql in columns.items())
        return self._records(
            f"SELECT {self._number} AS n, {shown} FROM {self._from(shown)} "
            f"WHERE {self._between(0, limit)} ORDER BY n",
            {},
        )

    def numbers(self, wanted: Wanted, offset: int, limit: int) -> list[int]:
        """The numbers of wanted rows, in order."""
        where, values = self._where(wanted)
        sql = (
            f"SELECT {self._number} AS n FROM {self._from(where)}{where} "
            "ORDER BY n LIMIT $limit OFFSET $offset"
        )
        values = {**values, "limit": limit, "offset": max(0, offset)}
        return [n for (n,) in self._ask(sql, values).fetchall()]

    def beside(self, wanted: Wanted, number: int) -> tuple[int | None, int | None]:
        """The wanted rows before and after one."""
        if not wanted.any:
            before, after = number - 1, number + 1
            return (before if before >= 0 else None, after if after < self.artifact.rows else None)
        where, values = self._where(wanted)
        sql = (
            "SELECT max(n) FILTER (n < $number), min(n) FILTER (n > $number) FROM "
            f"(SELECT {self._number} AS n FROM {self._from(where)}{where})"
        )
        found = self._ask(sql, {**values, "number": number}).fetchone()
        return (found[0], found[1]) if found else (None, None)

    def row(self, number: int) -> dict[str, Any]:
        """All columns of a row, with its number ``n``.

        Raises:
            UserError: there is no such row.
        """
        if not 0 <= number < self.artifact.rows:
            raise UserError(f"{self.artifact.path} has {self.artifact.rows} rows, from 0 on")
        found = self.rows(number, number + 1)
        if not found:
            raise UserError(f"{self.artifact.path} is being made anew: reload the page")
        return found[0]

    def rows(self, start: int, end: int) -> list[dict[str, Any]]:
        """All columns of the rows from one number to before another, each with its number ``n``."""
        return self._records(
            f"SELECT {self._number} AS n, t.* FROM {self._from('')} "
            f"WHERE {self._between(start, end)} ORDER BY n",
            {},
        )

    def about(
        self, problems: Sequence[str], samples: Sequence[int] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of some problems (those of ``samples`` only), each with its number ``n``.

        Token ids and log-probabilities, which nothing shows, are left out.
        """
        sampled = "" if samples is None else " AND list_contains($samples, t.sample)"
        return self._records(
            f"SELECT {self._number} AS n, COLUMNS(lambda c: c NOT IN ('token_ids', 'logprobs')) "
            f"FROM {self._from('')} "
            f"WHERE {self.listing.problem} IN (SELECT unnest($problems)){sampled} ORDER BY n",
            {"problems": list(problems), "samples": samples},
        )

    def _records(self, sql: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = self._ask(sql, values)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def _ask(self, sql: str, values: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
        return self._tables.ask(sql, {**self._files, **values})

    def _between(self, start: int, end: int) -> str:
        """Rows by number, said so that only their row groups are read."""
        parts = []
        for index, (first, after) in enumerate(
            zip(self._starts, [*self._starts[1:], self.artifact.rows], strict=True)
        ):
            a, b = max(start, first), min(end, after)
            if a < b:
                parts.append(
                    f"(t.file_index = {index} AND t.file_row_number >= {a - first}"
                    f" AND t.file_row_number < {b - first})"
                )
        return f"({' OR '.join(parts)})" if parts else "false"

    def _from(self, used: str) -> str:
        """The rows with what the SQL names beside them; tables that are not there are empty."""
        sql = f"{_ROWS.format('t')} t"
        for name, file in (("p", "p"), ("r", "r"), ("s", "v")):
            if re.search(rf"\b{name}\.", used):
                there = _JOINS if file in self._files else _EMPTY
                sql += there[name].replace("{problem}", self.listing.problem or "NULL")
        return sql

    def _where(self, wanted: Wanted) -> tuple[str, dict[str, Any]]:
        over, parts = self.listing, []
        conditions = (
            ("text", over.text, "contains(lower({}), lower($text))"),
            ("status", over.status, "{} = $status"),
            ("level", over.level, "{} = $level"),
            ("rate_from", over.rate, "{} >= $rate_from"),
            ("rate_to", over.rate, "{} <= $rate_to"),
            ("length_from", over.length, "{} >= $length_from"),
            ("length_to", over.length, "{} <= $length_to"),
            ("problem", over.problem, "{} = $problem"),
        )
        for name, column, condition in conditions:
            if column is not None and getattr(wanted, name) is not None:
                parts.append(condition.format(f"({column})"))
        values = {name: getattr(wanted, name) for name, *_ in conditions}
        return (f" WHERE {' AND '.join(parts)}" if parts else ""), values


_EMPTY = {
    "p": " LEFT JOIN (SELECT NULL::VARCHAR AS id, NULL::VARCHAR AS prompt,"
    " NULL::VARCHAR AS answer, NULL::VARCHAR AS level) p ON false",
    "r": " LEFT JOIN (SELECT NULL::VARCHAR AS completion, NULL::INTEGER AS completion_tokens) r"
    " ON false",
    "s": " LEFT JOIN (SELECT NULL::DOUBLE AS rate) s ON false",
}


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rising numbers as half-open ranges."""
    for _, run in itertools.groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        found = [n for _, n in run]
        yield found[0], found[-1] + 1


def _literal(path: str) -> str:
    """A file's name as a pattern that fits it alone."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


@lru_cache(maxsize=256)
def _starts(key: str, files: tuple[str, ...]) -> Sequence[int]:
    """The number of the first row of each file; ``key`` changes when the files do."""
    import pyarrow.parquet as pq

    try:
        counts = [pq.ParquetFile(file).metadata.num_rows for file in files]
    except (OSError, ValueError) as e:
        raise UserError(f"the rows can't be read: {str(e).splitlines()[0]}") from None
    return list(itertools.accumulate(counts[:-1], initial=0))
