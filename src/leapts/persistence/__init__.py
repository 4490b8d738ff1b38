"""Saved models: the model folder, its schema, the model card, ONNX export and the Hugging Face Hub."""
