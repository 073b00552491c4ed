"""Tensor parallelism on two processes. Needs PyTorch, which mlsysim does not, and no GPU."""

import tempfile

import torch
import torch.distributed as dist
from torch.nn.functional import gelu


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


def block(enter, leave, x, up, up_bias, down, down_bias):
    """Return a feed-forward block's output, and the gradients of a loss."""
    y = leave(gelu(enter(x) @ up + up_bias) @ down) + down_bias
    return y, *torch.autograd.grad((y**2).sum(), (x, up, up_bias, down, down_bias))


def work(rank, ranks, store):
    """Compare a process with its part of the whole."""
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=ranks)
    torch.manual_seed(0)  # the same numbers in every process
    shapes, cut = [(6, 8), (8, 32), (32,), (32, 8), (8,)], {1: 1, 2: 0, 3: 0}
    whole = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    mine = [t.chunk(ranks, cut[i])[rank] if i in cut else t for i, t in enumerate(whole)]
    y, *gradients = block(lambda x: x, lambda y: y, *whole)
    expected = [t.chunk(ranks, cut[i])[rank] if i in cut else t for i, t in enumerate(gradients)]
    found = block(Enter.apply, Leave.apply, *mine)
    torch.testing.assert_close(found, (y, *expected), rtol=1e-12, atol=1e-12)
    print(f"process {rank}: the output and {len(expected)} gradients are those of one device")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (2, f"{folder}/store"), nprocs=2)
