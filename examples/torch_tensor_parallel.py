"""Tensor parallelism on two processes, with PyTorch; mlsysim needs none."""

import tempfile

import torch
import torch.distributed as dist
from torch.nn.functional import gelu

# Tokens, matrix, bias, matrix, bias; along which axes they are split.
SHAPES, AXES = [(6, 8), (8, 32), (32,), (32, 8), (8,)], [None, 1, 0, 0, None]


def total(own):
    """Sum over the processes."""
    dist.all_reduce(own := own.clone())
    return own


class Enter(torch.autograd.Function):
    """Hand activations on, sum their gradients."""

    forward = staticmethod(lambda _, x: x.view_as(x))
    backward = staticmethod(lambda _, gradient: total(gradient))


class Leave(torch.autograd.Function):
    """Sum partial results, hand gradients on."""

    forward = staticmethod(lambda _, partial: total(partial))
    backward = staticmethod(lambda _, gradient: gradient)


def block(given, enter=lambda x: x, leave=lambda y: y):
    """Return a feed-forward block's output, and the gradients of a loss."""
    x, up, up_bias, down, down_bias = given
    y = leave(gelu(enter(x) @ up + up_bias) @ down) + down_bias
    return y, *torch.autograd.grad((y**2).sum(), given)


def work(rank, ranks, store):
    """Compare what a process computes with its part of the whole."""
    where = f"file://{store}"
    dist.init_process_group("gloo", where, rank=rank, world_size=ranks)

    def part(tensor, axis):
        return tensor if axis is None else tensor.chunk(ranks, axis)[rank]

    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)  # the same numbers in every process
    whole = [torch.randn(shape, requires_grad=True) for shape in SHAPES]
    y, *gradients = block(whole)
    expected = y, *map(part, gradients, AXES)
    found = block(list(map(part, whole, AXES)), Enter.apply, Leave.apply)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    print(f"process {rank}: output and gradients are those of one device")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (2, f"{folder}/store"), nprocs=2)
