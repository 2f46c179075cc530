"""What the daemon tells Prometheus about itself."""
