"""Renders events for people and CI systems.

Terminal output, JUnit XML, Markdown, HTML with drawings, and badges depend only on events: the
same events give the same bytes, live or from a saved ``events.jsonl``. `board` builds a website
from many runs. Text from implementations is never trusted.
"""
