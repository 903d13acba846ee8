"""Where problems come from, one source a file, each with a ``RECIPE``."""
