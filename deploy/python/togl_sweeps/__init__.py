"""togl from Python: the folds of sweeps as frames.

The commands ``togl`` and ``togl-worker`` are installed with this package. All Python of the project lives here.
"""

from .frames import TheCommandFailed, read

__all__ = ["TheCommandFailed", "read"]
