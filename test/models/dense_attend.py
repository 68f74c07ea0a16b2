"""A trivial `attend` for the tests of models: dense lists of K/V, one sequence."""
import torch
from torch import Tensor


class DenseCache:
    """The K/V of one sequence: a prefix, and own tokens after it."""

    def __init__(self, num_layers: int) -> None:
        self._layers: list[list[Tensor]] = [[] for _ in range(num_layers)]

    def fork(self) -> 'DenseCache':
        """Return a cache that shares what is stored so far and grows alone."""
        other = DenseCache(len(self._layers))
        other._layers = [list(layer) for layer in self._layers]
        return other

    def bidirectional(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Keep k and v; all fresh tokens see everything."""
        return self._attend(layer, q, k, v, keep=True, causal=False)

    def causal(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Keep k and v; fresh tokens see the past and themselves."""
        return self._attend(layer, q, k, v, keep=True, causal=True)

    def transient(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Forget k and v afterwards; all fresh tokens see everything."""
        return self._attend(layer, q, k, v, keep=False, causal=False)

    def _attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, keep: bool,
                causal: bool) -> Tensor:
        fresh = torch.stack((k, v))  # [2, num_tokens, num_kv_heads, head_dim]
        keys, values = torch.cat([*self._layers[layer], fresh], 1).transpose(1, 2)
        if keep:
            self._layers[layer].append(fresh)
        num_fresh, num_all = len(q), keys.shape[1]
        mask = torch.ones(num_fresh, num_all, dtype=torch.bool)
        if causal:
            mask = mask.tril(num_all - num_fresh)
        out = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(0, 1)[None], keys[None], values[None], enable_gqa=True,
            attn_mask=mask if causal and num_fresh > 1 else None)
        return out[0].transpose(0, 1).flatten(1)
