"""What a model takes of a GPU's memory, worked out from its config: no GPU, no weights loaded.

`shape` counts parameters, `training` what a training step holds, `serving` what vLLM holds. All is
in bytes, of one GPU.
"""
