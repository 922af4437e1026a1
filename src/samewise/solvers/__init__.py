"""How objectives over a matrix are minimized."""
