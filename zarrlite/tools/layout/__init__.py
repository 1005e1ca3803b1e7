"""Explain every byte of a stored object, check stored objects for damage, and repair them."""

from __future__ import annotations

from zarrlite.tools.layout.check import Problem, check
from zarrlite.tools.layout.objects import Stored, explain
from zarrlite.tools.layout.repair import REPAIRS, repair
from zarrlite.tools.layout.tree import Fault, Range, Role

__all__ = ["REPAIRS", "Fault", "Problem", "Range", "Role", "Stored", "check", "explain", "repair"]
