"""Whether a thread was seen saving something."""

from __future__ import annotations

from hotloop.diagnose.sightings import Sighting

SAVERS = (
    "torch/serialization.py:save",
    "safetensors/torch.py:save_file",
    "safetensors/torch.py:save_model",
    "save_pretrained",
    "save_checkpoint",
    "distributed/checkpoint/state_dict_saver.py:save",
)
CALLS = ("pickle.dump(", "np.save(", "numpy.save(")
"""Not written in Python, and so on no stack: only the line that calls them is."""


def is_saving(sighting: Sighting) -> bool:
    line = sighting.line
    calls = line is not None and any(call in line.source for call in CALLS)
    return calls or sighting.passes(*SAVERS)
