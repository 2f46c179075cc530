"""Predictions and control over HTTP: from the newest snapshot, in processes of their own."""
