"""Data for pretraining: synthetic and real series, the bank that stores them, and the sampler of training windows."""
