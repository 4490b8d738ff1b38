"""Published benchmarks by their own protocols: GIFT-Eval, and the covariate tasks of fev-bench.

SeasonalNaive, recomputed here, equals the published one on every configuration; the tests hold it to that.
"""
