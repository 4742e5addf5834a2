"""What a case costs: samples, the method; costs, ratios and shares as frames.

It may import: the ground (errors, files, paths, processes, progress, stats), run, cases.
"""
