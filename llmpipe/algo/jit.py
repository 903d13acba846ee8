"""One source of kernels: compiled by Numba where that is there and worth its start, else Python's.

A module of kernels works on numbers and numpy arrays alone and names its functions in ``KERNELS``.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType


def has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


@cache
def compiled(name: str) -> ModuleType:
    """The module of that name again, with its kernels compiled by Numba.

    They are compiled once an installation, in seconds; later processes load them.
    """
    import numba

    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # A kernel finds the ones it calls among its module's names, so they are exchanged there.
    for kernel in module.KERNELS:
        setattr(module, kernel.__name__, numba.njit(cache=True)(kernel))
    return module
