"""The paper's experiments on real data: runs described by data, results as JSON lines, tables made from those alone."""
