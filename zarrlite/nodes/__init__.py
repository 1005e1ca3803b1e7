"""Arrays, groups, and the functions that open and create them: the part of the library that users touch."""
