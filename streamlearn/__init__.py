"""streamlearn: learns from a stream for as long as it runs, and does not forget."""
