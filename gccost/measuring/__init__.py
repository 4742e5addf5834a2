"""Measuring: toolchains and tools, builds, plans, the sampler, the campaign, packs.

It may import: the ground (errors, files, paths, processes, progress, stats), run, cases.
"""
