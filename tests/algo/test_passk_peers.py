"""The same counts in other harnesses, where they are installed (`pip install --no-deps` is enough).

Only the file with their function is loaded: the packages import much else.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from llmpipe.algo.passk import pass_at_k, pass_hat_k


def peer(package: str, file: str) -> ModuleType:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    path = Path(found.submodule_search_locations[0], file)
    spec = importlib.util.spec_from_file_location(f"peer_{package}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as e:
        pytest.skip(f"{package} can't be loaded: {e}")
    return module


@pytest.mark.parametrize(
    ("package", "file", "function"),
    [
        ("evalscope", "metrics/utils/functions.py", "calculate_pass_at_k"),
        ("lighteval", "tasks/tasks/lcb/codegen_metrics.py", "estimate_pass_at_k"),
    ],
)
def test_pass_at_k_is_that_of_other_harnesses(package: str, file: str, function: str) -> None:
    theirs = getattr(peer(package, file), function)
    worst = 0.0
    for n in (1, 4, 8, 16, 64, 256):
        right = list(range(n + 1))
        for k in (k for k in (1, 2, 4, 8, 16, 64, 256) if k <= n):
            ours = [pass_at_k(n, c, k) or 0.0 for c in right]
            worst = max(worst, float(np.abs(theirs(n, right, k) - ours).max()))
    assert worst < 1e-13  # theirs is a product of floating point numbers


def test_pass_hat_k_is_that_of_evalscope() -> None:
    theirs = peer("evalscope", "metrics/utils/functions.py").calculate_pass_hat_k
    for n, k in ((4, 2), (8, 8), (64, 16)):
        for c in range(n + 1):
            assert math.isclose(theirs(n, c, k), pass_hat_k(n, c, k) or 0.0, abs_tol=1e-15)
