"""The formats of files that people who run nodes have."""
