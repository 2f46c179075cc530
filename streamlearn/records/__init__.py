"""Records as they come from a stream, and the examples that are decoded from them."""
