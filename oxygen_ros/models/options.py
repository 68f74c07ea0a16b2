# SPDX-License-Identifier: Apache-2.0
"""What a caller may choose of a model, by its name or that of a checkpoint; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TYPE_CHECKING

from ..engine.spec import PrefixScope
from ..setting import check, refusal, setting, settings_of

if TYPE_CHECKING:
    import torch

MODEL_NAMES = ('tiny',)
DTYPE_NAMES = ('float32', 'bfloat16')
_SAID_BY_A_CHECKPOINT = (
    'seed',
    'image_px',
    'prefix_scope',
    'num_kv_heads',
    'num_denoising_steps',
)
_OF_A_CHECKPOINT = ('adapter', 'camera_map')


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What a caller may choose of a model; a checkpoint says sizes, scope and steps itself.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'model'

    num_cameras: int = 3
    num_joints: int = 7
    cameras: tuple[str, ...] = ()  # the robot's, to be checked against a checkpoint's keys
    adapter: str = setting('', 'Folder in PEFT format with a LoRA for text only; empty: none')
    camera_map: tuple[str, ...] = setting(
        (),
        "Pairs camera=key where a camera has another name than the checkpoint's key",
        none='',
    )
    device: str = setting('auto', 'auto (a GPU if there is one), cpu, cuda or cuda:N')
    dtype: str = setting('float32', 'Type of weights and KV cache', choices=DTYPE_NAMES)
    seed: int = setting(0, 'Seed of random weights', low=0)
    image_px: int = setting(
        112,
        "Side of the vision tower's input (tiny model); a multiple of 14",
        'px',
        low=14,
        high=1120,
    )
    action_dt_s: float = setting(
        0.02, 'Time between two steps of a chunk', 's', low=0.001, high=1.0
    )
    prefix_scope: PrefixScope | str = setting(
        PrefixScope.OBSERVATION, 'What the shared prefix holds'
    )
    num_kv_heads: int = setting(1, 'Key and value heads of the tiny model', low=1, high=16)
    num_denoising_steps: int = setting(5, 'Euler steps of an action pass', low=1, high=100)
    compile: bool = setting(
        False,
        'Compile vision tower and denoising step (torch.compile): configuring takes up to '
        'minutes longer; if compiling fails, they run eagerly',
    )
    cuda_graphs: bool = setting(
        False,
        'Replay vision tower, language layers and denoising steps as CUDA graphs; without a CUDA '
        'device, or if capturing fails, they run eagerly. Best together with compile',
    )

    def __post_init__(self) -> None:
        """Check what no model checks itself."""
        check(self)
        self.torch_device()

    def check_for(self, is_checkpoint: bool) -> None:
        """Refuse what a kind of model does not take, rather than drop it.

        :raises SettingError: an option that only the other kind has.
        """
        for name in _SAID_BY_A_CHECKPOINT if is_checkpoint else _OF_A_CHECKPOINT:
            entry = settings_of(ModelOptions)[name]
            value = entry.of_field(getattr(self, name))
            if value == entry.default:
                continue
            if is_checkpoint:
                raise refusal(
                    self,
                    name,
                    f'{entry.default} together with model.checkpoint, which says it itself',
                )
            text = ', '.join(map(str, value)) if isinstance(value, list) else value
            raise refusal(self, name, 'together with model.checkpoint', f'{text} alone')

    def torch_device(self) -> torch.device:
        """Resolve `device`."""
        import torch

        if self.device == 'auto':
            return torch.device('cuda' if torch.cuda.is_available() else 'cpu')
        try:
            device = torch.device(self.device)
        except RuntimeError:
            device = torch.device('meta')
        if device.type not in ('cpu', 'cuda'):
            raise refusal(self, 'device', 'auto, cpu or cuda')
        if device.type == 'cuda' and not torch.cuda.is_available():
            raise refusal(self, 'device', f'a usable CUDA device for {self.device}', 'none')
        return device
