"""The paper's experiments: runs described by data, results as JSON lines, and tables rendered from them."""
