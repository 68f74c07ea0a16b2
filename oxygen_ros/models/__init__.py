# SPDX-License-Identifier: Apache-2.0
"""Mixture-of-Transformers VLA models: maths and weights, handed to the engine as a `VLAModel`."""
