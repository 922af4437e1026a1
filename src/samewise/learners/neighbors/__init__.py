"""Similarities learned from each example's near neighbors."""
