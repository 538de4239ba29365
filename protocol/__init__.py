"""The conformance protocol: typed messages, their schemas, one line in and one line out.

This layer imports nothing else from the project. Everything that passes between the harness and
an implementation, or between the runner and the reports, is a type defined here.
"""
