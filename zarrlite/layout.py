"""Explain every byte of a stored object, check stored objects for damage, and repair them."""

from zarrlite.tools.layout import REPAIRS, Fault, Problem, Range, Role, Stored, check, explain, repair

__all__ = ["REPAIRS", "Fault", "Problem", "Range", "Role", "Stored", "check", "explain", "repair"]
