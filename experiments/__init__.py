"""Replications of published experiments; `python -m experiments` lists them."""
