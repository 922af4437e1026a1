"""The algorithms as plain loops over their formulas. Nothing here imports the package."""
