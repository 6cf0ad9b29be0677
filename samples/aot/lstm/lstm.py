#!/usr/bin/env python3
"""Prints a network of a phone as StableHLO text: three layers of an LSTM of 60 units with random weights, on a sequence of 16.

    lstm.py > lstm.mlir

From JAX the same text is `jax.jit(network).lower(sequence).as_text()`.
"""

import random
import struct


def dense(numbers: random.Random, count: int, scale: float) -> str:
    """The bytes of floats in [-scale, scale), as the text of a dense attribute."""
    return '"0x' + b"".join(struct.pack("<f", numbers.uniform(-scale, scale)) for _ in range(count)).hex().upper() + '"'


def lstm(layers: int = 3, units: int = 60, steps: int = 16) -> str:
    """Layers of an LSTM with constant weights over a sequence of inputs of the same size; gives the last layer's last output."""
    numbers = random.Random(1)
    state = f"tensor<1x{units}xf32>"
    gates = f"tensor<1x{4 * units}xf32>"
    weights = f"tensor<{2 * units}x{4 * units}xf32>"
    sequence = f"tensor<{steps}x{units}xf32>"
    both = f"tensor<1x{2 * units}xf32>"
    lines = [f"func.func @main(%x: {sequence}) -> {state} {{",
             "  %first = stablehlo.constant dense<0> : tensor<i32>",
             f"  %empty = stablehlo.constant dense<0.0> : {state}"]
    for k in range(layers):
        lines.append(f"  %w{k} = stablehlo.constant dense<{dense(numbers, 8 * units * units, 0.2)}> : {weights}")
        lines.append(f"  %b{k} = stablehlo.constant dense<{dense(numbers, 4 * units, 0.2)}> : {gates}")
    carried = ["%i = %first"] + [f"%{name}{k} = %empty" for k in range(layers) for name in "hc"]
    types = ", ".join(["tensor<i32>"] + [state] * (2 * layers))
    lines += [f"  %r:{2 * layers + 1} = stablehlo.while({', '.join(carried)}) : {types}", "  cond {",
              f"    %n = stablehlo.constant dense<{steps}> : tensor<i32>",
              "    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
              "    stablehlo.return %p : tensor<i1>", "  } do {",
              "    %zero = stablehlo.constant dense<0> : tensor<i32>",
              f"    %in0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, {units}] : ({sequence}, tensor<i32>, tensor<i32>) -> {state}"]
    for k in range(layers):
        lines += [f"    %z{k} = stablehlo.concatenate %in{k}, %h{k}, dim = 1 : ({state}, {state}) -> {both}",
                  f"    %m{k} = stablehlo.dot_general %z{k}, %w{k}, contracting_dims = [1] x [0] : ({both}, {weights}) -> {gates}",
                  f"    %sum{k} = stablehlo.add %m{k}, %b{k} : {gates}"]
        for place, gate in enumerate("ifgo"):
            lines.append(f"    %{gate}{k} = stablehlo.slice %sum{k} [0:1, {place * units}:{(place + 1) * units}] : ({gates}) -> {state}")
            op = "tanh" if gate == "g" else "logistic"
            lines.append(f"    %{gate}a{k} = stablehlo.{op} %{gate}{k} : {state}")
        lines += [f"    %fc{k} = stablehlo.multiply %fa{k}, %c{k} : {state}",
                  f"    %ig{k} = stablehlo.multiply %ia{k}, %ga{k} : {state}",
                  f"    %nc{k} = stablehlo.add %fc{k}, %ig{k} : {state}",
                  f"    %t{k} = stablehlo.tanh %nc{k} : {state}",
                  f"    %in{k + 1} = stablehlo.multiply %oa{k}, %t{k} : {state}"]
    results = ["%next"] + [f"%{name}{k + 1 if name == 'in' else k}" for k in range(layers) for name in ("in", "nc")]
    lines += ["    %one = stablehlo.constant dense<1> : tensor<i32>", "    %next = stablehlo.add %i, %one : tensor<i32>",
              f"    stablehlo.return {', '.join(results)} : {types}", "  }",
              f"  return %r#{2 * layers - 1} : {state}", "}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(lstm(), end="")
