"""Reading and writing the chunks of an array, one or many at a time."""
