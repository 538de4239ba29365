"""Renders events for people and CI systems.

Terminal output, JUnit XML, Markdown, HTML with drawings, and badges depend only on events: the same
events produce the same bytes, whether live or read from a saved ``events.jsonl``. `board` builds a
website from many runs. Text from implementations is never trusted.
"""
