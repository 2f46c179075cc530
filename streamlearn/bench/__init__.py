"""How fast this machine learns, saves and serves: every figure beside its yardstick, taken in turns in the same run."""
