"""What every room stands on: records, artifacts on disk, the journal, workers, plugins, errors."""
