"""What trains a model, one method a file, each with a ``TRAINER``."""
