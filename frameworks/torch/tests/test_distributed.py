"""Data-parallel training over gloo: the compiled module within DistributedDataParallel."""

import os
import socket

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PROCESSES, STEPS = 2, 3


def data(rank: int):
    generator = torch.Generator().manual_seed(rank)
    return [(torch.randn(8, 12, generator=generator), torch.randint(0, 4, (8,), generator=generator)) for _ in range(STEPS)]


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))


def train(forward, parameters, batches) -> None:
    optimizer = torch.optim.SGD(parameters, 0.1)
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(forward(x), y).backward()
        optimizer.step()


def worker(rank: int, port: int, device: str, results) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=PROCESSES)
    import tenon_torch

    own = model()
    compiled = torch.compile(own, backend="tenon", options={"device": device, "fallback": "error"})
    train(DistributedDataParallel(compiled), own.parameters(), data(rank))
    results[rank] = ([each.detach().clone() for each in own.parameters()], tenon_torch.counters.calls)
    dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_gloo_available(), reason="this build of PyTorch has no gloo")
def test_data_parallel(device):
    """Two processes get the weights of one that trains on both batches, and each ran its programs."""
    expected = model()
    whole = [(torch.cat([x, a]), torch.cat([y, b])) for (x, y), (a, b) in zip(data(0), data(1))]
    train(expected, expected.parameters(), whole)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with mp.get_context("spawn").Manager() as manager:
        results = manager.dict()
        mp.spawn(worker, (port, device, results), nprocs=PROCESSES, join=True)
        for rank in range(PROCESSES):
            parameters, calls = results[rank]
            assert calls == 2 * STEPS  # A forward and a backward program a step.
            for left, right in zip(parameters, expected.parameters()):
                torch.testing.assert_close(left, right.detach(), rtol=1e-5, atol=1e-6)
