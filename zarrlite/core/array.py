"""Arrays."""

from zarrlite.nodes.array import Array
from zarrlite.nodes.convenience import create, from_array
from zarrlite.nodes.opening import create_array

__all__ = ["Array", "create", "create_array", "from_array"]
