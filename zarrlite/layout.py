"""What each byte of a stored object is, and whether all of them are as they must be."""

from zarrlite.tools.layout import REPAIRS, Fault, Problem, Range, Role, Stored, check, explain, repair

__all__ = ["REPAIRS", "Fault", "Problem", "Range", "Role", "Stored", "check", "explain", "repair"]
