"""The running service: what a record does to the state, saving it, and the loop around both."""
