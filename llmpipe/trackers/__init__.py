"""Where a run's figures are sent while it goes on, one experiment tracker a file (``TRACKER``)."""
