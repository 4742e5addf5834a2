"""What the costs prove: quantities, rules, the ledger, agreement, sittings left out,
and how far figures carry from one machine to another.

It may import: the ground (errors, files, paths, processes, progress, stats), run, cases, costs.
"""
