"""What draws answers from a model, one generator a file, each with an ``ENGINE``."""
