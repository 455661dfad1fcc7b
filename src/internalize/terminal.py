"""The terminal that is printed on."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def terminal(**options: Any) -> "Console":
    """A rich console on which text is text: ":b:" in the name of a distribution is no emoji, and brackets are no markup."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, **options)
