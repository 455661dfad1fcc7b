"""Finite groups as semiautomata, by name: the states are the elements, and a symbol is an element that acts on them.

    C<n>    counters, addition modulo n                         elements 0..n-1
    D<n>    symmetries of an n-gon, 2n elements                 r0..r(n-1) rotations, s0..s(n-1) reflections
    S<k>    permutations of k points                            words such as 021
    A<k>    even permutations of k points                       words such as 120
    C2xC3   direct products of any of these                     pairs such as 1.2
    S3:gen  the same states with a few generators as symbols (and the identity, where one generator is left alone)

The next state of state a under symbol b is the product "b after a". The start state is the identity.
"""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from internalize.errors import UserError
from internalize.tasks.base import Ints
from internalize.tasks.semiautomata import Semiautomaton, simulations

LARGEST = 1000  # elements: the table then has a million entries
LARGEST_COUNTER = 100_000  # whose table is a view of one row, and takes no memory
_FACTOR = r"[CDSA]\d{1,6}"


@dataclass(frozen=True, eq=False)
class Group:
    """Element names, the table of products `table[a, b]` = b after a, and generators; element 0 is the identity."""

    names: tuple[str, ...]
    table: Ints
    generators: tuple[int, ...]


def group(name: str) -> Group:
    """The group called `name`. Raises `UserError` for an unknown name or too large a group."""
    if not _is_group(name):
        raise UserError(f'task "{name}": no group is called so.')
    factors = [_factor(part[0], int(part[1:]), name) for part in name.split("x")]
    order = math.prod(order for _, order in factors)
    largest = LARGEST_COUNTER if len(factors) == 1 and name.startswith("C") else LARGEST
    if order > largest:
        raise UserError(f'task "{name}" has {order:,} states; at most {largest:,} are supported.')
    product, *others = [make() for make, _ in factors]
    for other in others:
        product = _product(product, other)
    return product


def _is_group(name: str) -> bool:
    return re.fullmatch(f"{_FACTOR}(x{_FACTOR})*", name) is not None


def _factor(family: str, n: int, whole: str) -> tuple[Callable[[], Group], int]:
    least = {"C": 2, "D": 3, "S": 2, "A": 3}[family]
    if n < least:
        raise UserError(f'task "{whole}": the number in "{family}{n}" must be at least {least}.')
    order = {"C": n, "D": 2 * n}.get(family) or math.factorial(min(n, 10)) // (2 if family == "A" else 1)
    makers: dict[str, Callable[[int], Group]] = {
        "C": _cyclic,
        "D": _dihedral,
        "S": _permutations,
        "A": lambda k: _permutations(k, even=True),
    }
    return (lambda: makers[family](n)), order


def _cyclic(n: int) -> Group:
    return Group(tuple(map(str, range(n))), np.lib.stride_tricks.sliding_window_view(np.arange(2 * n - 1) % n, n), (1,))


def _dihedral(n: int) -> Group:
    # Element (f, i): the point x goes to i + x (rotation, f = 0) or to i - x (reflection, f = 1), modulo n.
    flip, turn = np.divmod(np.arange(2 * n), n)
    a_flip, b_flip, a_turn, b_turn = flip[:, None], flip[None, :], turn[:, None], turn[None, :]
    turns = (b_turn + np.where(b_flip == 1, -a_turn, a_turn)) % n
    names = tuple(f"{'rs'[f]}{i}" for f, i in zip(flip, turn, strict=True))
    return Group(names, ((a_flip + b_flip) % 2) * n + turns, (1, n))


def _permutations(k: int, even: bool = False) -> Group:
    elements = np.array([p for p in itertools.permutations(range(k)) if not (even and _odd(p))])
    place = k ** np.arange(k)[::-1]  # the elements are sorted, so their codes in base k are too
    products = np.stack([elements[:, element] for element in elements])  # (a, b, point): b[a[point]]
    codes = elements @ place

    def index(*permutation: int) -> int:
        return int(np.searchsorted(codes, np.array(permutation) @ place))

    cycle = index(*range(1, k), 0)
    swap = index(1, 0, *range(2, k))
    if even:  # a 3-cycle, and a cycle of the longest odd length that ends at the last point
        cycle = index(*range(1, k), 0) if k % 2 else index(0, *range(2, k), 1)
        swap = index(1, 2, 0, *range(3, k))
    names = tuple("".join(map(str, element)) for element in elements)
    return Group(names, np.searchsorted(codes, products @ place), tuple(dict.fromkeys((swap, cycle))))


def _odd(permutation: tuple[int, ...]) -> bool:
    return sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 == 1


def _product(a: Group, b: Group) -> Group:
    names = tuple(f"{x}.{y}" for x in a.names for y in b.names)
    size = len(b.names)
    left, right = np.divmod(np.arange(len(names)), size)
    table = a.table[np.ix_(left, left)] * size + b.table[np.ix_(right, right)]
    return Group(names, table, tuple(g * size for g in a.generators) + b.generators)


@lru_cache(maxsize=16)  # a configuration makes its task many times
def semiautomaton(name: str) -> Semiautomaton:
    """The semiautomaton of the group called `name`, which ":gen" may follow. Raises `UserError`."""
    base, colon, alphabet = name.partition(":")
    if colon and alphabet != "gen":
        raise UserError(f'task "{name}": only ":gen" can follow a group\'s name.')
    elements = group(base)
    if not colon:
        return Semiautomaton(name, elements.names, elements.names, elements.table)
    # One symbol would leave nothing to choose, so the identity joins a lone generator.
    symbols = [0, *elements.generators] if len(elements.generators) == 1 else [*elements.generators]
    names = tuple(elements.names[symbol] for symbol in symbols)
    return Semiautomaton(name, elements.names, names, elements.table[:, symbols])


FAMILY = simulations(
    "groups such as C3, D4, S3, A5, products such as C2xC3, each with :gen for generators as symbols",
    lambda name: _is_group(name.partition(":")[0]),
    semiautomaton,
)
