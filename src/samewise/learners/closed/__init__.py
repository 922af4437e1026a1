"""Learners whose answer is a formula."""
