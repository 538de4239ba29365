"""Reports: one stream of events becomes everything that a person or a CI system sees.

Terminal output, JUnit XML, Markdown, one HTML page with drawn machines, and a badge are each a
function of the events alone: the same events give the same bytes, live or from a saved
``events.jsonl``. Text that came from an implementation is never trusted.
"""
