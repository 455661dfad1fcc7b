import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.errors import UserError
from internalize.tasks import semiautomaton
from internalize.tasks.groups import group

ORDERS = {"C2": 2, "C7": 7, "D3": 6, "D4": 8, "D7": 14, "S2": 2, "S3": 6, "S4": 24, "S5": 120, "A3": 3, "A4": 12, "A5": 60}
ORDERS |= {"C2xC3": 6, "C2xC2xC2": 8, "S3xD4": 48, "C6xA4": 72}
COMMUTATIVE = {"C2", "C7", "S2", "A3", "C2xC3", "C2xC2xC2"}


@pytest.mark.parametrize("name", ORDERS)
def test_each_is_the_group_of_its_name(name: str) -> None:
    made = group(name)
    order, table = ORDERS[name], made.table
    elements = np.arange(order)
    assert len(set(made.names)) == order
    assert (table[0] == elements).all()
    assert (table[:, 0] == elements).all()
    assert (np.sort(table, axis=0) == elements[:, None]).all()
    assert (np.sort(table, axis=1) == elements).all()
    some = np.random.default_rng(0).integers(order, size=(3, 500))
    a, b, c = some
    assert (table[table[a, b], c] == table[a, table[b, c]]).all()
    assert (table == table.T).all() == (name in COMMUTATIVE)


@pytest.mark.parametrize("name", ORDERS)
def test_generators_generate(name: str) -> None:
    made = group(name)
    reached = {0}
    while True:
        more = reached | {int(made.table[a, g]) for a in reached for g in made.generators}
        if more == reached:
            break
        reached = more
    assert len(reached) == ORDERS[name]


def test_permutations_compose_by_their_names() -> None:
    made = group("S4")
    for a in range(24):
        for b in range(24):
            composed = "".join(made.names[b][int(point)] for point in made.names[a])
            assert made.names[made.table[a, b]] == composed


def test_the_dihedral_group_acts_on_a_polygon() -> None:
    n, made = 5, group("D5")

    def act(name: str, point: int) -> int:
        return (int(name[1:]) + (point if name[0] == "r" else -point)) % n

    for a in range(2 * n):
        for b in range(2 * n):
            product = made.names[made.table[a, b]]
            assert [act(product, x) for x in range(n)] == [act(made.names[b], act(made.names[a], x)) for x in range(n)]


@given(st.integers(2, 9), st.integers(2, 9))
def test_a_product_works_in_each_factor(n: int, m: int) -> None:
    made = group(f"C{n}xC{m}")
    names = [tuple(map(int, name.split("."))) for name in made.names]
    for a, (x, y) in enumerate(names):
        b = (a * 7 + 3) % (n * m)
        assert names[made.table[a, b]] == ((x + names[b][0]) % n, (y + names[b][1]) % m)


def test_generators_as_symbols() -> None:
    assert semiautomaton("S3:gen").symbols == ("102", "120")
    assert semiautomaton("C5:gen").symbols == ("0", "1")
    assert semiautomaton("D4:gen").symbols == ("r1", "s0")
    assert semiautomaton("A4:gen").symbols == ("1203", "0231")
    assert semiautomaton("C2xC3:gen").symbols == ("1.0", "0.1")
    full, few = semiautomaton("S3"), semiautomaton("S3:gen")
    for column, symbol in enumerate(few.symbols):
        assert (few.delta[:, column] == full.delta[:, full.symbols.index(symbol)]).all()


@pytest.mark.parametrize(
    "name",
    [
        *("", "C", "c3", "C3 ", "C-3", "x", "C2x", "xC2", "Q8", "C2xQ8", "C2*C3", "S3:", "S3:all", "S3:gen:gen", ":gen"),
        *("C0", "C1", "C100001", "S1", "S7", "S99", "A2", "A7", "D2", "D501", "S5xS5"),
    ],
)
def test_unknown_names(name: str) -> None:
    with pytest.raises(UserError, match=r"task|states"):
        semiautomaton(name)
