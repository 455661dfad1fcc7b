"""Weights, written down and not trained, of transformers that simulate a semiautomaton exactly in one forward pass.

    internalize construct C12 --steps 25 --via crt

Every construction is an ordinary `Transformer` (one head, ReLU, no norm, absolute positions) that reads BOS sigma_1 .. sigma_T
and, at the column of each sigma_t, puts the greatest logit on the state q_t.

    via      automata   layers         MLP width            embedding       source
    crt      C_n        ceil(log2 T)   3 sum p^v            sum p^v + ...   paper, Theorem 3 (our layer saves its "+ 1")
    scalar   C_n        ceil(log2 T)   2                    4               ours
    count    C_n        1              about 2T(n-1)/n      4               ours
    scan     any        ceil(log2 T)   3|Q|^2 + |Q|         2|Q| + 3        Liu et al. 2023, our weights

n = prod p^v. Every number that an MLP adds up is an integer below 2^24, so that float32 is exact. What is outside of that is
refused.

Prefix doubling, shared by `crt`, `scalar` and `scan`: at layer l = 0, 1, .. the column of sigma_t holds the composition of the
symbols t - 2^l + 1 .. t (from BOS on, where that begins earlier; BOS stands for the identity). Attention fetches what the
column t - 2^l holds, and the MLP composes the two. After ceil(log2 T) layers every column holds its whole prefix.

How a column fetches from exactly 2^l columns before: the score of key column j is c (2 j (t - 2^l) - j^2), greatest at
j = t - 2^l, or at BOS (j = 0) where that is negative, and smaller by at least c = 64 anywhere else. e^-64 vanishes in float32.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch

from internalize.errors import UserError
from internalize.models import ModelConfig, Transformer
from internalize.models.transformer import Layer
from internalize.rendering import Vocabulary
from internalize.tasks import Simulation

Via = Literal["crt", "scalar", "count", "scan"]
VIAS: tuple[Via, ...] = get_args(Via)

SHARPNESS = 64.0  # c above: e^-64 times any value here vanishes beside it in float32
EXACT = 2**24  # integers up to here are exact in float32
FARTHEST = 1024  # T up to which scores c (2 j t - j^2) keep apart in float32
COUNTED = 2**13  # largest sum of symbols T (n - 1) for `count`: what its MLP adds up stays below 2^24
LARGEST = 2 * 10**8  # parameters


@dataclass(frozen=True)
class Construction:
    """A constructed transformer, and what the statement behind it allows for.

    bound_layers, bound_mlp: the layers and MLP width that the source states, as text.
    """

    via: Via
    model: Transformer
    bound_layers: str
    bound_mlp: str

    def summary(self) -> dict[str, Any]:
        """Its sizes beside those that the source states, as JSON values."""
        config = self.model.config
        built = {"layers": config.layers, "width": config.width, "mlp": config.mlp, "parameters": self.model.parameter_count}
        return {"via": self.via, **built, "bound_layers": self.bound_layers, "bound_mlp": self.bound_mlp}


def construct(task: Simulation, via: Via) -> Construction:
    """The exact transformer for `task` (from its fixed start state) of one construction; see the module's text.

    Raises:
        UserError: when the construction is not for this automaton, or would not be exact in float32.
    """
    if task.sampled_start:
        raise UserError("a construction starts from the fixed start state; leave out --start.")
    if task.steps > FARTHEST:
        raise UserError(f"steps is {task.steps}; in float32 a construction tells {FARTHEST} columns apart, and no more.")
    if via not in VIAS:
        raise UserError(f'via "{via}" is unknown; choose {", ".join(VIAS)}.')
    if via != "scan":
        check_counter(task, via)
    builders: dict[Via, Callable[[Simulation], Construction]] = {"crt": crt, "scalar": scalar, "count": count, "scan": scan}
    return builders[via](task)


def check_counter(task: Simulation, via: str) -> None:
    """Raise `UserError` unless the task is a counter C_n from 0 with all of Z_n as symbols."""
    automaton, n = task.automaton, len(task.automaton.states)
    square, residues = automaton.delta.shape == (n, n), np.arange(n)
    if not square or automaton.start or any((row != (residues + q) % n).any() for q, row in enumerate(automaton.delta)):
        raise UserError(f"{task.name} is not a counter C_n with the symbols 0..n-1; {via} needs one. Take --via scan.")


def prime_powers(n: int) -> list[int]:
    """The prime powers p^v whose product is n, by increasing p; [1] for n = 1."""
    powers = []
    p = 2
    while n > 1:
        power = 1
        while n % p == 0:
            n //= p
            power *= p
        if power > 1:
            powers.append(power)
        p += 1
    return powers or [1]


# -- the four constructions -----------------------------------------------------------------------------------------------


def crt(task: Simulation) -> Construction:
    """C_n by residues (paper, Theorem 3): addition mod n is addition mod each prime power m of n, all in parallel.

    A column holds, for each m, its residue a one-hot; the MLP adds two residues:

    1. attention writes the fetched residue u (a number) beside the one-hot, whose own residue is x = sum_a a onehot_a;
    2. ReLU(s - k) for k = 0 .. 2m - 2, s = x + u, gives 1[s = c] as a second difference, and the new one-hot is
       1[s = c] + 1[s = c + m]: 2m - 1 hidden units;
    3. m + 1 more units carry the old one-hot and u, and subtract them from the residual stream.

    Logit of state j: the number of moduli m in which the residue is j mod m. The gap is at least 1.
    """
    n = len(task.automaton.states)
    moduli = prime_powers(n)
    start = np.cumsum([0, *moduli])  # first coordinate of each one-hot
    fetched = int(start[-1])  # then one coordinate for each modulus, then ONE, J, JJ
    one = fetched + len(moduli)
    model = _blank(task, doublings(task.steps), one + 3, 3 * sum(moduli))
    with torch.no_grad():
        _columns(model, one)
        residues = torch.arange(n)
        for index, m in enumerate(moduli):
            model.embedding.weight[_symbols(task), int(start[index]) + residues % m] = 1
            model.embedding.weight[Vocabulary.BOS, start[index]] = 1
            model.unembedding.weight[_states(task), int(start[index]) + residues % m] = 1
        for depth, layer in enumerate(_layers(model)):
            _fetch(layer, 2**depth, one)
            hidden = 0
            for index, m in enumerate(moduli):
                digits, u = torch.arange(m), fetched + index
                onehot = slice(int(start[index]), int(start[index]) + m)
                _move(layer, onehot, u, digits.float())
                # ReLU(s - k), k = 0 .. 2m - 2, and the second differences
                ramps = torch.arange(2 * m - 1)
                layer.mlp_in.weight[hidden + ramps, onehot] = digits.float().expand(2 * m - 1, m)
                layer.mlp_in.weight[hidden + ramps, u] = 1
                layer.mlp_in.bias[hidden + ramps] = -ramps.float()
                for s in range(2 * m - 1):
                    c = int(start[index]) + s % m
                    if s:
                        layer.mlp_out.weight[c, hidden + s - 1] += 1
                        layer.mlp_out.weight[c, hidden + s] -= 2
                    else:  # 1[s = 0] = 1 - ReLU(s) + ReLU(s - 1)
                        layer.mlp_out.bias[c] += 1
                        layer.mlp_out.weight[c, hidden] -= 1
                    if s < 2 * m - 2:
                        layer.mlp_out.weight[c, hidden + s + 1] += 1
                hidden += 2 * m - 1
                _erase(layer, [*range(int(start[index]), int(start[index]) + m), u], hidden)
                hidden += m + 1
    total = sum(moduli)
    return Construction("crt", model, f"ceil(log2(T+1)) = {math.ceil(math.log2(task.steps + 1))}", f"O(sum p^v), sum = {total}")


def scalar(task: Simulation) -> Construction:
    """C_n for any n, prime or not, with two hidden units in each layer (ours).

    A column holds its residue as a number. Attention adds the fetched one to it, s = a + b <= 2n - 2, and the MLP subtracts
    n (ReLU(s - n + 1) - ReLU(s - n)), which is n from s = n on and 0 below. Logit of state j: 2 j s - j^2, greatest at j = s,
    by at least 1.
    """
    n = len(task.automaton.states)
    if 2 * n * n > EXACT:
        raise UserError(f"C{n} via scalar: its logits pass 2^24 and are not exact in float32; take n <= 2896, or --via crt.")
    residue, one = 0, 1
    model = _blank(task, doublings(task.steps), 4, 2)
    with torch.no_grad():
        _columns(model, one)
        model.embedding.weight[_symbols(task), residue] = torch.arange(n).float()
        for depth, layer in enumerate(_layers(model)):
            _fetch(layer, 2**depth, one)
            _move(layer, slice(residue, residue + 1), residue, torch.ones(1))
            layer.mlp_in.weight[:, residue] = 1
            layer.mlp_in.bias[:] = torch.tensor([1.0 - n, -n])
            layer.mlp_out.weight[residue] = torch.tensor([-n, n])
        _read_number(task, model, residue, one)
    return Construction("scalar", model, f"ceil(log2 T) = {doublings(task.steps)}", "2")


def count(task: Simulation) -> Construction:
    """C_n for any n in one layer (ours): attention sums the symbols, and the MLP is a sawtooth.

    1. Attention gives every symbol the same score 0 and BOS, at column t, the score log(M - t), M = T + 1. So each symbol has
       weight 1 / M whatever t is, and M times what is attended to is the sum S of the symbols, 0 <= S <= T (n - 1).
    2. S is added to a coordinate that holds 1.5 * 2^23: float32 rounds such a sum to an integer, which takes away the error of
       the softmax. (In exact arithmetic there is none, and the constant only cancels.)
    3. S mod n = S - n #{k >= 1: S >= k n}. Each jump is two ReLUs, 0 at S = kn - 1 and 1 at S = kn. Those above the middle face
       right and those below face left, so that the integers stay half as large. 2 floor(T (n - 1) / n) hidden units in all.

    Logits as in `scalar`.
    """
    n, steps = len(task.automaton.states), task.steps
    most = steps * (n - 1)
    if most > COUNTED:
        raise UserError(
            f"C{n} via count: the sum of {steps} symbols reaches {most:,}; float32 is exact up to {COUNTED:,} only. "
            f"Take at most {COUNTED // (n - 1)} steps, or --via scalar."
        )
    symbol, total, one, log = 0, 1, 2, 3
    rounds = 1.5 * 2**23
    jumps = most // n
    model = _blank(task, 1, 4, max(1, 2 * jumps))
    with torch.no_grad():
        assert model.position is not None
        model.position.weight[:, one] = 1
        model.position.weight[:, total] = rounds
        model.position.weight[: steps + 1, log] = torch.log(torch.arange(steps + 1, 0, -1).float())
        model.embedding.weight[_symbols(task), symbol] = torch.arange(n).float()
        model.embedding.weight[Vocabulary.BOS, total] = 1  # the keys tell BOS by that
        (layer,) = _layers(model)
        layer.query.weight[0, log] = math.sqrt(model.config.width)
        layer.key_value.weight[0, total] = 1
        layer.key_value.bias[0] = -rounds
        layer.key_value.weight[model.config.width, symbol] = 1
        layer.attention_out.weight[total, 0] = steps + 1
        layer.mlp_out.bias[total] = -rounds
        for index in range(jumps):
            at = n * (index + 1)
            both = slice(2 * index, 2 * index + 2)
            right = at > most / 2
            sign = 1.0 if right else -1.0
            layer.mlp_in.weight[both, total] = sign
            layer.mlp_in.bias[both] = torch.tensor([1.0, 0.0] if right else [0.0, -1.0]) - sign * (at + rounds)
            layer.mlp_out.weight[total, both] = torch.tensor([-n, n]) * sign
            layer.mlp_out.bias[total] -= 0 if right else n
        _read_number(task, model, total, one)
    return Construction("count", model, "1", f"2 floor(T(n-1)/n) = {2 * jumps}")


def scan(task: Simulation) -> Construction:
    """Any semiautomaton by parallel prefix of transition functions (Liu et al. 2023; the weights are ours).

    A column holds a function g: Q -> Q as the numbers g(0) .. g(N-1), N = |Q|; at first that of its symbol. Attention fetches
    the function f of the symbols before. The MLP composes, h(q) = g(f(q)). With x = f(q) and integers throughout,

        sum_a ReLU(g(a) - N (x - a)) + ReLU(g(a) + N (x - a))  =  g(x) + sum_a g(a) + N sum_a |x - a|,

    since for a != x one of the two is 0 (g(a) < N) and for a = x both are g(x). The last two terms are sums of ReLU(g(a)) and,
    as |x - a| = 2 ReLU(x - a) - (x - a), of ReLU(x - a). Hidden units: for each q 2N gates and N ramps, and N that carry g:
    3N^2 + N. Logits of state j from h(start), as in `scalar`.
    """
    automaton = task.automaton
    states = len(automaton.states)
    width, mlp = 2 * states + 3, 3 * states**2 + states
    depth = doublings(task.steps)
    parameters = depth * (4 * width**2 + 2 * width * mlp)
    if states**3 > EXACT or parameters > LARGEST:
        raise UserError(
            f"{task.name} via scan: {states} states over {task.steps} steps need {parameters:,} parameters; "
            f"at most {LARGEST:,} are built. Take fewer steps or states."
        )
    g, f, one = slice(0, states), slice(states, 2 * states), 2 * states
    model = _blank(task, depth, width, mlp)
    every = torch.arange(states)
    ramp = 2 * states**2  # hidden units: gates of q at 2 N q, ramps of q at `ramp` + N q, carriers of g at the end
    carry = ramp + states**2
    with torch.no_grad():
        _columns(model, one)
        model.embedding.weight[_symbols(task), g] = torch.from_numpy(automaton.delta.T.copy()).float()
        model.embedding.weight[Vocabulary.BOS, g] = every.float()
        for level, layer in enumerate(_layers(model)):
            _fetch(layer, 2**level, one)
            for q in range(states):
                _move(layer, slice(q, q + 1), states + q, torch.ones(1), channel=q)
                x = states + q
                for sign, block in ((-1.0, 2 * states * q), (1.0, 2 * states * q + states)):
                    layer.mlp_in.weight[block + every, every] = 1
                    layer.mlp_in.weight[block + every, x] = sign * states
                    layer.mlp_in.bias[block + every] = -sign * states * every.float()
                ramps = ramp + states * q + every
                layer.mlp_in.weight[ramps, x] = 1
                layer.mlp_in.bias[ramps] = -every.float()
                # h(q) - g(q), where N sum_a |x - a| = N (2 sum_a ReLU(x - a) - N x + N (N - 1) / 2)
                layer.mlp_out.weight[q, 2 * states * q : 2 * states * (q + 1)] = 1
                layer.mlp_out.weight[q, carry + every] = -1
                layer.mlp_out.weight[q, carry + q] -= 1
                layer.mlp_out.weight[q, ramps] = -2.0 * states
                layer.mlp_out.weight[q, ramps[0]] += states**2  # ReLU(x - 0) is x
                layer.mlp_out.bias[q] = -(states**2) * (states - 1) / 2
                layer.mlp_out.weight[x, ramps[0]] = -1  # and f makes room for the next layer
            layer.mlp_in.weight[carry + every, every] = 1
        assert f.stop == one
        _read_number(task, model, automaton.start, one)
    return Construction("scan", model, f"O(log T), ceil(log2 T) = {depth}", f"O(|Q|^2), |Q|^2 = {states**2}")


# -- parts ----------------------------------------------------------------------------------------------------------------


def doublings(steps: int) -> int:
    """Layers after which prefix doubling has covered `steps` symbols (a transformer has at least one)."""
    return max(1, math.ceil(math.log2(steps)))


def _blank(task: Simulation, layers: int, width: int, mlp: int) -> Transformer:
    """A transformer for the task with all weights 0."""
    config = ModelConfig(layers, width, heads=1, mlp=mlp, positions="absolute", activation="relu", norm="none")
    model = Transformer(config, Vocabulary.of(task).size, task.longest + 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model.eval()


def _layers(model: Transformer) -> list[Layer]:
    return [layer for layer in model.layers if isinstance(layer, Layer)]


def _symbols(task: Simulation) -> torch.Tensor:
    """The ids of the symbols."""
    return torch.from_numpy(Vocabulary.of(task).task(task.symbol_tokens))


def _states(task: Simulation) -> torch.Tensor:
    """The ids of the states."""
    return torch.from_numpy(Vocabulary.of(task).task(task.state_tokens))


def _columns(model: Transformer, one: int) -> None:
    """Coordinates `one`, `one` + 1, `one` + 2 of each position j: 1, j and j^2."""
    assert model.position is not None
    j = torch.arange(model.length).float()
    model.position.weight[:, one : one + 3] = torch.stack([torch.ones_like(j), j, j * j], dim=1)


def _fetch(layer: Layer, back: int, one: int) -> None:
    """Attend to the column `back` before, or to BOS: score c (2 j (t - back) - j^2); sqrt(width) undoes attention's scale."""
    width = layer.query.weight.shape[1]
    c = SHARPNESS * math.sqrt(width)
    layer.query.weight[0, one + 1] = 2 * c
    layer.query.weight[0, one] = -2 * c * back
    layer.query.weight[1, one] = -c
    layer.key_value.weight[0, one + 1] = 1
    layer.key_value.weight[1, one + 2] = 1


def _move(layer: Layer, source: slice, to: int, weights: torch.Tensor, channel: int | None = None) -> None:
    """Add to coordinate `to` the weighted sum of what the attended column holds in `source`; by value channel `channel`."""
    channel = to if channel is None else channel
    width = layer.query.weight.shape[1]
    layer.key_value.weight[width + channel, source] = weights
    layer.attention_out.weight[to, channel] = 1


def _erase(layer: Layer, coordinates: list[int], hidden: int) -> None:
    """Hidden units from `hidden` on carry the (nonnegative) coordinates and subtract them."""
    for unit, coordinate in enumerate(coordinates, hidden):
        layer.mlp_in.weight[unit, coordinate] = 1
        layer.mlp_out.weight[coordinate, unit] = -1


def _read_number(task: Simulation, model: Transformer, coordinate: int, one: int) -> None:
    """Logit of state j is 2 j s - j^2 for the number s in `coordinate`: s^2 - (s - j)^2. Of other tokens it is -1."""
    model.unembedding.weight[:, one] = -1
    j = torch.arange(len(task.automaton.states)).float()
    model.unembedding.weight[_states(task), coordinate] = 2 * j
    model.unembedding.weight[_states(task), one] = -j * j
