"""A run: its folder on disk, and the formats of its files.

It may import: the ground (errors, files, paths, processes, progress, stats).
"""
