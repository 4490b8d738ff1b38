"""Reading and validating series, and handing them to a model window by window.

The path is straight: a file or frame is read (`reading`), validated once (`validation`), and becomes a
`Panel` (`panel`), which is split (`splits`), scaled (`scaling`) and windowed (`windows`). Nothing is imported
here, so that listing the catalogue stays quick.
"""
