"""One subcommand's work a file: a frozen ``Config`` and ``run(config, ..., out)``."""
