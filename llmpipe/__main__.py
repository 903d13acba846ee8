"""``python -m llmpipe`` is ``llmpipe``."""

from llmpipe.cli import main

if __name__ == "__main__":
    main()
