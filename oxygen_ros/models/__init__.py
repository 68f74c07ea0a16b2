"""Mixture-of-Transformers VLA models: maths and weights, handed to the engine as a `VLAModel`."""
from .registry import create_model, model_names, ModelOptions

__all__ = ['ModelOptions', 'create_model', 'model_names']
