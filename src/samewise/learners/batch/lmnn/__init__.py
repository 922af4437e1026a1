"""Large margin nearest neighbors."""
