"""Arrays in, arrays out: free functions without validation."""
