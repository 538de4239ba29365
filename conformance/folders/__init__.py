"""Folders of files that nobody answers for: made, tampered with and removed with care."""
