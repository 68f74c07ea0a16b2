# SPDX-License-Identifier: Apache-2.0
"""Mixture-of-Transformers VLA models: maths and weights, handed to the engine as a `VLAModel`."""

from .checkpoint import load_checkpoint
from .registry import create_model, is_known_model, model_names, ModelOptions

__all__ = ['ModelOptions', 'create_model', 'is_known_model', 'load_checkpoint', 'model_names']
