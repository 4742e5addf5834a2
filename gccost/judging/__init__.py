"""What the costs prove: quantities, rules, the ledger, agreement, sittings left out.

It may import: the ground (errors, files, paths, processes, progress, stats), run, cases, costs.
"""
