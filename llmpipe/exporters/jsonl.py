"""JSON Lines of any rows, as they are."""

from __future__ import annotations

from llmpipe.core.protocols import Export, Exporter, Shape
from llmpipe.core.records import RECORDS


def _guide(export: Export) -> str:
    return f"""\
One JSON object a line. Any tool reads it:

    head -1 {export.data} | python -m json.tool
"""


EXPORTER = Exporter(
    trainer="any tool",
    shapes=[
        Shape(record=name, schema=record.SCHEMA, guide=_guide) for name, record in RECORDS.items()
    ],
    lines=True,
)
