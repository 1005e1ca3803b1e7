"""Arrays, groups, and the functions that open and create them: the user-facing part of the library."""
