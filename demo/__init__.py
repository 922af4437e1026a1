"""Handwritten digits: metrics learned from a stream of pairs and from labels, and their use."""
