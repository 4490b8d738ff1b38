"""Use LeapTS with other libraries; each module needs its own extra.

Nothing is imported here, so that a module needs only its own library.
"""
