"""Pure functions: normal forms, packing, pass@k, mazes, chat masks."""
