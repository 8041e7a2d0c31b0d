from __future__ import annotations

from hotloop.levers.registry import LEVERS
from hotloop.search.interactions import compiles


def test_what_changes_compiled_graphs_compiles_anew() -> None:
    found = {name for name in LEVERS if compiles(name)}
    assert {"compile", "compile_loss", "fused_attention", "fp8", "shape_padding"} <= found
    assert not found & {"bf16", "fused_optimizer", "loader_workers"}
    assert "model_graph" not in found  # whose graphs are captured within seconds
