"""Learners that minimize an objective over all examples at once."""
