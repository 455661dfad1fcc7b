"""Weights and training state on disk: safetensors only, with a JSON header, written to a temporary name and renamed.

A file therefore exists whole or not at all, even after `kill -9`. No pickle is ever read.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from internalize.errors import UserError
from internalize.models import ModelConfig, Transformer


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that `path` holds either its old content or all of the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write named tensors and a JSON header."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(path, save(contiguous, {"internalize": json.dumps(header)}))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the header of a file of ours. Raises `UserError` for any other file."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            header: dict[str, Any] = json.loads((file.metadata() or {})["internalize"])
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such checkpoint.") from None
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise UserError(f"{path}: this is not a checkpoint of internalize, or it is damaged ({error}).") from None
    return tensors, header


def save_model(path: Path, model: Transformer, **header: Any) -> None:
    """Write a model's weights, with all that is needed to build it again."""
    shape = {"model": asdict(model.config), "vocabulary": model.vocabulary, "length": model.length}
    save_tensors(path, model.state_dict(), {**shape, **header})


def load_model(path: Path) -> Transformer:
    """The model that `save_model` wrote. Raises `UserError`."""
    tensors, header = load_tensors(path)
    try:
        model = Transformer(ModelConfig(**header["model"]), header["vocabulary"], header["length"])
        model.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError) as error:
        raise UserError(f"{path}: the checkpoint does not hold a transformer of this version ({error}).") from None
    return model.eval()


def optimizer_tensors(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state, flat: "<parameter>/<entry>"."""
    return {
        f"{name}/{entry}": value
        for name, parameter in model.named_parameters()
        for entry, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(model: torch.nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """The inverse of `optimizer_tensors`, for a fresh optimizer."""
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        name, entry = key.rsplit("/", 1)
        # AdamW keeps its step counts on the CPU, and the moments beside the parameter.
        optimizer.state[parameters[name]][entry] = value if entry == "step" else value.to(parameters[name].device)


def read_values(file: Path) -> dict[str, Any] | None:
    """What a JSON file holds; None where there is no such file. Raises `UserError` when it is damaged."""
    try:
        return dict(json.loads(file.read_text())) if file.exists() else None
    except ValueError as error:
        raise UserError(f"{file}: not valid JSON ({error}).") from None
