"""A peer's script with torch's fused Adam: python fused_adam.py SCRIPT [FLAGS...]

transformers' Trainer takes it by default; a script that makes its own Adam does not.
Runs in the peer's environment, which has torch and not this package.
"""

import pathlib
import runpy
import sys
from typing import Any

import torch


class FusedAdam(torch.optim.Adam):
    """Adam in one kernel for all parameters."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "fused": True})


if __name__ == "__main__":
    del sys.argv[0]
    sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
    torch.optim.Adam = FusedAdam
    runpy.run_path(sys.argv[0], run_name="__main__")
