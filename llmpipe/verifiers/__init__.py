"""Rules that judge a response, one a file."""

from __future__ import annotations

LIBRARIES = ("math-verify", "sympy", "mpmath", "latex2sympy2_extended")
"""The distributions whose versions decide verdicts: part of the fingerprint of what uses them."""
