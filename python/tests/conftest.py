import pathlib

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def normal(*sizes, seed=0, device="cpu", dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator,
                       dtype=torch.float64).to(device, dtype)
