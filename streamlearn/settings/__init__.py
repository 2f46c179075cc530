"""Settings: one pydantic model for each part, read without importing torch."""
