"""Curves over the object's size."""

WORD = 8  # bytes of a pointer
