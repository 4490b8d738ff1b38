"""LeapTS inside other people's tools: one module for each, each with an extra of its own.

Nothing is imported here, so that one adapter does not ask for the tool of another.
"""
