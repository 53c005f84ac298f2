"""Twins of the kernels of this repository, each with one mistake that real kernels have had.

The line at fault is marked `# fault`. Those of `memory` and `order` do what no kernel may, whatever the values are; those of
`values` run without complaint and answer wrongly; those of `tuning` depend on what a tuner does.
"""
