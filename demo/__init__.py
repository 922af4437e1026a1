"""A stream of pairs of handwritten digits, and what a metric learned from it is good for."""
