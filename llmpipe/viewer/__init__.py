"""Artifacts in a browser: served on this machine alone, or written as one page."""
