"""How results look: charts, tables, notebooks to HTML, the report; what is missing (doctor).

It may import: the ground (errors, files, paths, processes, progress, stats), run, cases, costs,
judging, measuring.
"""
