"""zarrlite: a small, complete Zarr v3 library in pure Python.

The library is loaded when the first of its names is used: the help of the command does without it, and without numpy.
Modules that are not always needed (`zarrlite.nodes.creation`, `zarrlite.nodes.info`) load in the same way.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from zarrlite.public import *  # noqa: F403
    from zarrlite.public import __all__ as __all__
else:

    def __getattr__(name):
        """A module of the library, or one of its public names, which is here then."""
        import importlib

        if name == "__all__" or not name.startswith("__"):
            try:
                return importlib.import_module(f"zarrlite.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"zarrlite.{name}":
                    raise
            public = _without_collections(lambda: importlib.import_module("zarrlite.public"))
            if name in public.__all__ or name == "__all__":
                return globals().setdefault(name, getattr(public, name))
        raise AttributeError(f"module 'zarrlite' has no attribute {name!r}")

    def _without_collections(load):
        """Nothing becomes garbage meanwhile, and to look for it among all that numpy has made takes its time."""
        import gc

        enabled = gc.isenabled()
        gc.disable()
        try:
            return load()
        finally:
            if enabled:
                gc.enable()

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
