"""The conformance protocol: typed messages, their schemas, one line in and one line out.

This layer imports nothing else of the project. Everything that crosses the border between
the harness and an implementation, and between the runner and the reports, is a type of this
package.
"""
