"""``accelerate launch`` that ends with its parent: ``python -m ... LIFELINE OPTIONS...``."""

from __future__ import annotations

import sys

from llmpipe.core.child import end_with


def main(lifeline: int, options: list[str]) -> None:
    end_with(lifeline)
    from accelerate.commands.launch import launch_command, launch_command_parser

    launch_command(launch_command_parser().parse_args(options))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
