"""Training: the loop, losses, checkpoints, knowledge distillation and data-parallel workers."""
