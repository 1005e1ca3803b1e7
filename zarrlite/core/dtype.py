"""`zarrlite.dtype` under another path."""

from zarrlite.dtype import *  # noqa: F403
