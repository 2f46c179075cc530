"""Streams of records: Kafka topics and the embedded log, behind one small interface."""
