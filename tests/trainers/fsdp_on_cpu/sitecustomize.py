"""Python loads this at its start: Accelerate then shares weights out on the CPU, too.

torch can. Accelerate leaves it out where there is no GPU, without a word.
"""

from __future__ import annotations

import os
from typing import Any

if os.environ.get("ACCELERATE_USE_FSDP") == "true" and "LOCAL_RANK" in os.environ:
    from accelerate.state import AcceleratorState
    from accelerate.utils import DistributedType

    _begin = AcceleratorState.__init__

    def _sharing(self: Any, *args: Any, fsdp_plugin: Any = None, **rest: Any) -> None:
        _begin(self, *args, fsdp_plugin=fsdp_plugin, **rest)
        if fsdp_plugin is not None:
            if self._mixed_precision != "no":
                fsdp_plugin.set_mixed_precision(self._mixed_precision)
            self.fsdp_plugin = fsdp_plugin
        if getattr(self, "fsdp_plugin", None) is not None:
            self.distributed_type = DistributedType.FSDP

    AcceleratorState.__init__ = _sharing
