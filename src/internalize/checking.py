"""Checks that every configuration shares: the types that its dataclass declares, least values, and devices."""

import dataclasses
from typing import Any, get_type_hints

from typeguard import TypeCheckError, check_type

from internalize.errors import UserError


def check_at_least(config: Any, least: int, *names: str, group: str = "") -> None:
    """Raise `UserError` for the first of the named fields that is below `least`."""
    for name in names:
        if not getattr(config, name) >= least:  # so that NaN fails, too
            raise UserError(f"{group}{name} is {getattr(config, name)}; it must be at least {least}.")


def check_types(config: Any, group: str = "") -> None:
    """Raise `UserError` for the first field of the dataclass `config` whose value is not of its declared type."""
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value, hint = getattr(config, field.name), hints[field.name]
        try:
            check_type(value, hint)
        except TypeCheckError:
            kind = getattr(hint, "__name__", None) if isinstance(hint, type) else str(hint).replace("typing.", "")
            raise UserError(f"{group}{field.name} is {value!r}; it must be of type {kind}.") from None
        if hint is not bool and isinstance(value, bool):
            raise UserError(f"{group}{field.name} is {value!r}; it must be a number.")


def check_device(device: str) -> None:
    """Raise `UserError` unless torch can put a tensor on `device`."""
    import torch

    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch raises either for a device that it lacks
        raise UserError(f'device "{device}" cannot be used: {str(error).splitlines()[0]}') from None
