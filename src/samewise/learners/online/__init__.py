"""Learners that take one example at a time, and can go on."""
