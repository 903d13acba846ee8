from __future__ import annotations

from xml.etree import ElementTree

from llmpipe.algo.maze_pictures import lines, svg
from llmpipe.algo.mazes import parse

MAZE = parse("S.*\n*.E")


def test_a_maze_is_drawn_with_its_path() -> None:
    assert lines(MAZE, "RDR") == [
        "┌──────┐",
        "│S ↓ ██│",
        "│██→ E │",
        "└──────┘",
    ]


def test_a_path_is_drawn_up_to_where_it_fails() -> None:
    assert lines(MAZE, "RRD")[1] == "│S   ██│"
    assert lines(MAZE, "RUD")[1] == "│S   ██│"
    assert lines(MAZE, "RLRD")[1] == "│S ↓ ██│"
    assert lines(MAZE, "")[2] == "│██  E │"


def test_svg_has_the_walls_and_the_path() -> None:
    root = ElementTree.fromstring(svg(MAZE, "RDR"))
    names = [element.tag.rpartition("}")[2] for element in root]
    assert names == ["rect", "rect", "rect", "polyline", "text", "text"]
    assert root.get("viewBox") == "0 0 30 20"
    walls = [(e.get("x"), e.get("y")) for e in root if e.get("class") == "w"]
    assert walls == [("20", "0"), ("0", "10")]
    (path,) = (e for e in root if e.get("class") == "p")
    assert path.get("points") == "5,5 15,5 15,15 25,15"
    assert [e.text for e in root if e.tag.endswith("text")] == ["S", "E"]


def test_svg_marks_where_a_path_broke() -> None:
    def faults(path: str) -> list[tuple[str, str | None]]:
        root = ElementTree.fromstring(svg(MAZE, path))
        red = [e for e in root if e.get("class") == "x"]
        return [(e.tag.rpartition("}")[2], e.get("d") or e.get("cx")) for e in red]

    assert faults("RDR") == []
    assert faults("") == []
    assert faults("RRD") == [("path", "M17 3l4 4m0 -4l-4 4")]  # into the wall, from the second cell
    assert faults("U") == [("path", "M3 -1l4 4m0 -4l-4 4")]  # out of the maze
    assert faults("RD") == [("circle", "15")]  # ends before E
