"""Reports of evals: a page, Markdown, plots, and the block that a model's card has."""
