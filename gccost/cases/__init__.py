"""What there is to measure: releases, benchmarks, studies, jobs, published figures, sources.

It may import: the ground (errors, files, paths, processes, progress, stats), run.
"""
