"""Files of arrays and plain values, and the explicit state of the objects that are kept in them."""
