"""What users touch: arrays, groups, and the functions that open and create them."""
