"""The conformance protocol: typed messages, their JSON lines and schemas, and the event stream.

This package imports nothing else from the project. Everything exchanged between the harness and an
implementation, or between the runner and the reports, has a type that is defined here.
"""
