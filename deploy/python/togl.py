"""What scripts of sweeps import: ``togl.fold()``. The same as ``togl_sweeps.program``, which says how it is used.

Under a worker the same module comes from the worker, so a script needs this only to be run by hand.
"""

from togl_sweeps.program import Fold, fold

__all__ = ["Fold", "fold"]
