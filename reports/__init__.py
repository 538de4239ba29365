"""Turns the stream of events into everything that a person or a CI system sees.

Terminal output, JUnit XML, Markdown, an HTML page with drawings of the machines, and a badge are
functions of the events alone: the same events produce the same bytes, live or from a saved
``events.jsonl``. `board` makes a site of many runs. Text from an implementation is never trusted.
"""
