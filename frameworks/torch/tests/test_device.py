"""torch.device("tenon"): eager mode, views, saving, optimizers, and compiled models whose weights stay there."""

import copy
import io
import math
import os
import subprocess
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tenon_torch
from models import MODELS, losses


@pytest.fixture(autouse=True)
def nothing_on_the_cpu(request, monkeypatch):
    if "left_to_the_cpu" not in request.keywords:
        monkeypatch.setenv("TENON_TORCH_FALLBACK", "error")
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


def pair(*shape: int, dtype=torch.float32):
    """A tensor of the CPU, and its copy on the device."""
    x = torch.randn(shape).to(dtype)
    return x, x.to("tenon")


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.device.type == "tenon" and found.shape == expected.shape
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


# The others behave as these; TENON_OPINFO=1 takes all.
TRAINED = MODELS if os.environ.get("TENON_OPINFO") == "1" else ("convolutional", "gru", "attention")


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("name", TRAINED)
def test_five_steps(name, mode, compiled):
    make, batch = MODELS[name]
    host = make()
    model = copy.deepcopy(host).to("tenon")
    data = [(batch(), torch.randint(0, 10, (4,))) for _ in range(5)]
    expected = losses(host, host, data, torch.optim.SGD(host.parameters(), 0.05, momentum=0.9))
    forward = compiled(model) if mode == "compiled" else model
    found = losses(model, forward, [(x.to("tenon"), y.to("tenon")) for x, y in data], torch.optim.SGD(model.parameters(), 0.05, momentum=0.9))
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-5, atol=1e-6)
    assert tenon_torch.counters.graphs == (2 if mode == "compiled" else 0)
    assert tenon_torch.counters.calls >= 10 and not tenon_torch.counters.fallbacks


def test_weights_stay(compiled):
    """A compiled model reads its weights where they are: no program moves them."""
    model = nn.Linear(64, 64).to("tenon")
    forward, x = compiled(model), torch.randn(4, 64, device="tenon")
    with torch.no_grad():
        forward(x)
        before = tenon_torch.counters.calls
        for _ in range(3):
            forward(x)
    assert tenon_torch.counters.calls == before + 3


def test_views_share_memory():
    x, y = pair(4, 6)
    for tensor in (x, y):
        tensor.view(-1)[3:9].add_(1)
        tensor.t()[2].mul_(3)
        tensor[1:3, ::2] = 7
        tensor.diagonal().zero_()
        tensor[:, 4].copy_(torch.arange(4.0))
    same(y, x)
    assert y.view(-1).untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


def test_views_of_other_types():
    x, y = pair(4, 6)
    same(y.view(torch.int32), x.view(torch.int32))
    y.view(torch.int16)[0].zero_()
    x.view(torch.int16)[0].zero_()
    same(y, x)
    same(y.unfold(1, 2, 2), x.unfold(1, 2, 2))


def test_views_of_parts_of_elements():
    """A storage of ten bytes has two integers of four bytes; what is behind them is kept."""
    host = torch.arange(10, dtype=torch.uint8)
    device = host.to("tenon")
    for each in (host, device):
        words = torch.empty(0, dtype=torch.int32, device=each.device).set_(each.untyped_storage(), 0, (2,), (1,))
        words += 7
        words[1:].fill_(-5)
        each[:8].view(torch.int64).mul_(3)
    same(device, host)


def test_set_of_a_tensor():
    host = torch.arange(12.0)
    device = host.to("tenon")
    for base in (host, device):
        part = torch.empty(0, device=base.device)
        part.set_(base[2:8].view(2, 3).t())
        part *= 10
        assert part.shape == (3, 2) and part.stride() == (1, 3) and part.storage_offset() == 2
        assert part.untyped_storage()._cdata == base.untyped_storage()._cdata
    same(device, host)


def test_threads_that_write_parts_of_a_storage():
    """None loses what another one has written meanwhile."""
    threads, turns = 4, 50
    whole = torch.zeros(threads, 256, device="tenon")

    def work(mine: int) -> None:
        for _ in range(turns):
            whole[mine].add_(mine + 1)

    running = [threading.Thread(target=work, args=(mine,)) for mine in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    same(whole, (torch.arange(1.0, threads + 1) * turns)[:, None].expand(threads, 256))


def test_imports_in_any_order():
    """The device's module may be imported before PyTorch, which loads it by the package's entry point."""
    code = "import tenon_torch.device, torch; print(torch.ones(2, device='tenon').sum().item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2.0", done.stderr


def test_tensors_of_the_cpu_beside_those_of_the_device():
    """As on other devices: numbers and indices may be there, no other tensors."""
    x, y = pair(4, 5)
    places = torch.tensor([2, 0])
    for refused in (lambda: torch.where(x > 0, y, y), lambda: F.embedding(places, y), lambda: y.index_select(0, places), lambda: y.gather(0, places[:, None]),
                    lambda: torch.stack([x, y]), lambda: F.linear(y, x), lambda: y.masked_fill(x > 0, 1), lambda: y.index_put_((places,), x[:2])):
        with pytest.raises(RuntimeError, match="same device"):
            refused()
    number = torch.tensor(2.0)
    same(torch.where(y > 0, y, number), torch.where(x > 0, x, number))
    same(y[places], x[places])
    same(y * number, x * number)
    y[places] = number
    x[places] = number
    y.masked_fill_(y > 1, number)
    x.masked_fill_(x > 1, number)
    same(y, x)


CASES = {
    "operators": lambda x: (x + 1) * 2 - x / 3,
    "mixed types": lambda x: x.double() * 2 + x.to(torch.bfloat16).float(),
    "products": lambda x: x @ x.t(),
    "reductions": lambda x: torch.stack([x.sum(), x.mean(), x.amax(), x.std()]),
    "sorts": lambda x: x.sort(1)[0] + x.topk(3, 1)[0].sum(),
    "indices": lambda x: x[torch.tensor([2, 0])][:, None, 1:4],
    "joins": lambda x: torch.cat([x, x.flip(0)]).repeat(2, 1),
    "where": lambda x: torch.where(x > 0, x, torch.tensor(0.0)),
    "out": lambda x: torch.add(x, 1, out=torch.empty(0, device=x.device)),
    "cumulative": lambda x: x.cumsum(1).cummax(0)[0],
    "transforms": lambda x: torch.fft.rfft(x).abs(),
    "empty": lambda x: x[:0].sum(0),
    "in place": lambda x: x.clone().exp_().clamp_(max=2).add_(x),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x + 1).conj() * 2) + torch.complex(x, x).real[..., None],
    "random integers": lambda x: torch.randint(3, 4, (2,), device=x.device) + torch.empty(2, dtype=torch.int64, device=x.device).random_(2, 3),
    "interpolation": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
}


@pytest.mark.parametrize("name", CASES)
def test_ops(name):
    x, y = pair(4, 6)
    same(CASES[name](y), CASES[name](x))


def test_assignments_by_indices_and_masks():
    x, y = pair(4, 5)
    rows, columns = torch.tensor([2, 0]), torch.tensor([True, False, True, True, False])
    for tensor in (x, y):
        own = [each.to(tensor.device) for each in (rows, columns)]
        tensor[own[0]] = 3.0
        tensor[rows, 1] += 2
        tensor[tensor > 1.5] = 0
        tensor[:, own[1]] = -1
        tensor.index_put_([own[0]], torch.ones(5, device=tensor.device), accumulate=True)
    same(y, x)
    assert torch.equal(y, y.clone()) and not torch.equal(y, y + 1) and not torch.equal(y, y[0])


def test_numbers_in_place_of_tensors():
    """PyTorch's own code gives ops numbers where they say tensors."""
    x, y = pair(3, 5)
    places = torch.tensor([[4], [0], [-1]])
    same(torch.take_along_dim(y, places.to("tenon"), 1), torch.take_along_dim(x, places, 1))


def test_results_beside_changed_arguments():
    """Results that are given, and statistics that are changed, by one op."""
    x, y = pair(2, 5, 3)
    found, expected = ([torch.empty(0, device=device) for _ in range(3)] for device in ("tenon", "cpu"))
    statistics, own = ([torch.zeros(5, device=device), torch.ones(5, device=device)] for device in ("cpu", "tenon"))
    torch._native_batch_norm_legit(x, None, None, *statistics, True, 0.1, 1e-5, out=expected)
    torch._native_batch_norm_legit(y, None, None, *own, True, 0.1, 1e-5, out=found)
    for left, right in zip(found + own, expected + statistics):
        same(left, right)


@pytest.mark.left_to_the_cpu
def test_ops_that_refuse_other_devices():
    x, y = torch.tensor([[1.0, 3, 3], [2, 2, 5]]), torch.tensor([[1.0, 3, 3], [2, 2, 5]], device="tenon")
    for found, expected in zip(torch.linalg.eig(y[:, :2]), torch.linalg.eig(x[:, :2])):
        same(found, expected)
    same(torch.hash_tensor(y), torch.hash_tensor(x))
    assert list(tenon_torch.counters.fallbacks) == ["aten.linalg_eig.default", "aten.hash_tensor.default"]
    z = torch.complex(x, x + 1)
    same(z.to("tenon").conj_physical_(), z.conj_physical())
    assert len(tenon_torch.counters.fallbacks) == 2


def test_output_padding_beyond_the_stride():
    pairs = [pair(2, 3, 4), pair(3, 2, 3)]
    for each in pairs:
        each[0].requires_grad_(), each[1].requires_grad_()
    for tensors in zip(*pairs):
        F.conv_transpose1d(*tensors, stride=2, padding=1, output_padding=3, dilation=4).square().sum().backward()
    for host, own in pairs:
        same(own.grad, host.grad)


def test_rows_of_integers():
    for start, end, steps in ((0, 7, 50), (-9.0, 4.3, 50), (5, -50, 12), (3, 4, 1), (-2, 6, 7)):
        same(torch.linspace(start, end, steps, dtype=torch.int64, device="tenon"), torch.linspace(start, end, steps, dtype=torch.int64))


def test_medians():
    x, y = pair(3, 4, 5)
    x[0, 1, 2] = y[0, 1, 2] = math.nan
    for op in (torch.median, torch.nanmedian):
        torch.testing.assert_close(op(y).cpu(), op(x), equal_nan=True)
        for dim in (0, 1, -1):
            for found, expected in zip(op(y, dim, keepdim=dim == 1), op(x, dim, keepdim=dim == 1)):
                torch.testing.assert_close(found.cpu(), expected, equal_nan=True)
        same(op(y[1].to(torch.int32)), op(x[1].to(torch.int32)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64])
def test_sums_of_products_are_rounded_once(dtype):
    start, a, b = ((torch.randn(shape) * 3).to(dtype) for shape in ((5, 6), (9, 5, 4), (9, 4, 6)))
    words = {"alpha": 3, "beta": 2} if dtype == torch.int64 else {"alpha": 0.3, "beta": 0.7}
    exact = torch.addbmm(*(each.double() for each in (start, a, b)), **words)
    found = torch.addbmm(*(each.to("tenon") for each in (start, a, b)), **words).cpu()
    torch.testing.assert_close(found.double(), exact, rtol=2 ** -8 if dtype == torch.bfloat16 else 1e-5, atol=1e-4)


def test_poles_of_zeta():
    x, q = torch.meshgrid(torch.arange(-1, 6), torch.arange(-5, 4), indexing="ij")
    for dtype in (torch.float32, torch.int64):
        expected = torch.special.zeta(x.to(dtype), q.to(dtype))
        torch.testing.assert_close(torch.special.zeta(x.to("tenon", dtype), q.to("tenon", dtype)).cpu(), expected, equal_nan=True)


def test_programs_are_kept():
    x = torch.randn(3, 5, device="tenon")
    x.sin()
    before = tenon_torch.counters.programs
    for _ in range(5):
        x.sin()
    assert tenon_torch.counters.programs == before


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_step_sizes_compile_nothing(name):
    """Numbers that change from step to step are arguments of the programs."""
    parameters = [nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(5))]
    own = [nn.Parameter(each.detach().to("tenon")) for each in parameters]
    optimizers = [getattr(torch.optim, name)(each, lr=0.1, weight_decay=0.01) for each in (parameters, own)]
    programs = []
    for step in range(5):
        for optimizer, chosen in zip(optimizers, (parameters, own)):
            for group in optimizer.param_groups:
                group["lr"] = 0.1 / (step + 1)
            for each in chosen:
                each.grad = (each.detach() * 0.5 + step).clone()
            optimizer.step()
        programs.append(tenon_torch.counters.programs)
    assert programs[1] == programs[-1] and tenon_torch.counters.calls > 20
    for found, expected in zip(own, parameters):
        same(found.detach(), expected.detach())


def test_numbers_of_every_value():
    """Each number is its own, whatever program was kept first."""
    x, y = pair(3, 4)
    a, b = pair(3, 4)
    for number in (0.5, -2.0, 0.0, 1.0):
        same(torch.add(y, b, alpha=number), torch.add(x, a, alpha=number))
        same(torch.sub(y, b, alpha=number), torch.sub(x, a, alpha=number))
        same(torch.addcmul(y, b, b, value=number), torch.addcmul(x, a, a, value=number))
        same(torch.addcdiv(y, b, b + 9, value=number), torch.addcdiv(x, a, a + 9, value=number))
        same(torch.lerp(y, b, number), torch.lerp(x, a, number))
        same(torch.empty_like(y).fill_(number), torch.full_like(x, number))
        same(y.bfloat16().add(b.bfloat16(), alpha=number).float(), x.bfloat16().add(a.bfloat16(), alpha=number).float())
        same(y * number + number, x * number + number)
        assert (y[0, 0] * number).dtype == torch.float32 and (y[0, 0] * torch.tensor(number, dtype=torch.float64)).dtype == torch.float64
    same(y.to(torch.int32).add_(3, alpha=2), x.to(torch.int32).add_(3, alpha=2))
    same(y.to(torch.int32) * 0.5, x.to(torch.int32) * 0.5)


def test_factories_and_random_numbers():
    assert torch.arange(5, device="tenon").tolist() == [0, 1, 2, 3, 4]
    assert torch.full((2,), 3, device="tenon").tolist() == [3, 3]
    torch.manual_seed(5)
    first = torch.randn(1000, device="tenon")
    torch.manual_seed(5)
    assert torch.equal(first.cpu(), torch.randn(1000, device="tenon").cpu())
    assert 0.9 < first.std().item() < 1.1
    generator = torch.Generator(device="tenon").manual_seed(1)
    drawn = torch.empty(8, device="tenon").uniform_(generator=generator)
    generator.manual_seed(1)
    assert torch.equal(drawn.cpu(), torch.empty(8, device="tenon").uniform_(generator=generator).cpu())


def test_saved_copied_and_loaded():
    x, y = pair(4, 6)
    model = nn.Linear(3, 2).to("tenon")
    file = io.BytesIO()
    torch.save({"x": y, "part": y[1], "state": model.state_dict()}, file)
    file.seek(0)
    loaded = torch.load(file)
    same(loaded["x"], x)
    same(loaded["part"], x[1])
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu")["state"]["weight"], model.weight.detach().cpu())
    other = copy.deepcopy(y)
    other.zero_()
    same(y, x)


def test_autocast():
    layer, x = nn.Linear(6, 3).to("tenon"), torch.randn(2, 6, device="tenon")
    with torch.autocast("tenon", dtype=torch.bfloat16):
        y = layer(x)
        assert y.dtype == torch.bfloat16 and y.softmax(1).dtype == torch.float32
    y.float().sum().backward()
    assert layer.weight.grad.device.type == "tenon"


def test_accelerator():
    assert torch.accelerator.current_accelerator().type == "tenon"
    assert torch.accelerator.device_count() == 1 and torch.accelerator.is_available()
    torch.accelerator.synchronize()
    assert torch.tenon.get_device_name()
    x = torch.ones(2).tenon()
    assert x.is_tenon and nn.Linear(2, 2).tenon().weight.is_tenon
    assert "device='tenon:0'" in str(torch.device("tenon", 0)) or str(x.device) == "tenon:0"


def test_pinned_batches():
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    batches = [batch.to("tenon", non_blocking=True).cpu() for batch, in torch.utils.data.DataLoader(data, 4, pin_memory=True)]
    assert torch.cat(batches).tolist() == list(range(8))


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("norm, shape", [(nn.BatchNorm1d, (8, 3)), (nn.BatchNorm2d, (4, 3, 5, 5)), (nn.BatchNorm3d, (2, 3, 2, 3, 3)),
                                         (nn.InstanceNorm2d, (2, 3, 4, 4))])
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_running_statistics(norm, shape, momentum, mode):
    """PyTorch's op does not say that it changes them."""
    host = norm(shape[1], momentum=momentum, track_running_stats=True) if momentum or norm is not nn.InstanceNorm2d else norm(shape[1], track_running_stats=True)
    model = copy.deepcopy(host).to("tenon")
    forward = torch.compile(model, backend="tenon") if mode == "compiled" else model
    for _ in range(3):
        x = torch.randn(shape) * 2 + 5
        host(x), forward(x.to("tenon"))
    assert host.running_mean.abs().min() > 0.5
    same(model.running_mean, host.running_mean)
    same(model.running_var, host.running_var)
    host.eval(), model.eval()
    same(forward(x.to("tenon")), host(x))
    same(model.running_mean, host.running_mean)


def test_eager_ops_within_compiled_functions():
    """Dynamo does not look into the kernels of the device that run behind a break of the graph."""
    def step(x, w):
        loss = (x @ w).sum()
        loss.backward()
        return loss.detach()

    w = torch.ones(4, 2, device="tenon", requires_grad=True)
    same(torch.compile(step, backend="tenon")(torch.ones(3, 4, device="tenon"), w), torch.tensor(24.0))
    same(w.grad, torch.full((4, 2), 3.0))

    def number(x):
        return x * 2, x.sum().item() + 1

    doubled, total = torch.compile(number, backend="tenon")(torch.ones(3, 4, device="tenon"))
    same(doubled, torch.full((3, 4), 2.0))
    assert total == 13


def test_ops_that_compile_beside_compiled_functions():
    """A device op that is compiled for the first time sets no switch that stops the compiled functions of other threads."""
    forward = torch.compile(nn.Linear(4, 4), backend="tenon")
    x = torch.randn(2, 4)
    forward(x)
    wrong, calls, ended = [], [], threading.Event()

    def call():
        while not ended.is_set():
            try:
                forward(x)
                calls.append(1)
            except RuntimeError as error:
                wrong.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    before = tenon_torch.counters.programs
    for n in range(50, 56):
        (torch.ones(n, 3).to("tenon") * 2).tanh()
    ended.set()
    thread.join()
    assert not wrong and len(calls) > 10 and tenon_torch.counters.programs >= before + 6


@pytest.mark.left_to_the_cpu
def test_left_to_the_cpu(monkeypatch):
    """What has no lowering goes to the CPU and back, and is counted by name; a variable makes an error of it."""
    x, y = pair(5, 5)
    found, expected = (torch.linalg.eigvals(each).cpu() for each in (y, x))
    torch.testing.assert_close(found.abs().sort()[0], expected.abs().sort()[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(y[y > 0].cpu(), x[x > 0])
    assert "tenon:0" in repr(y)
    assert any("eig" in name for name in tenon_torch.counters.fallbacks)
    monkeypatch.setenv("TENON_TORCH_FALLBACK", "error")
    with pytest.raises(Exception, match="PyTorch would have to run aten.*linalg_eig"):
        torch.linalg.eigvals(y)


def test_errors():
    x = torch.randn(4, 6, device="tenon")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        x @ torch.randn(5, 5, device="tenon")
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.randn(4, 6)
    with pytest.raises(TypeError, match="tenon:0"):
        x.numpy()
    with pytest.raises(tenon_torch.Unsupported, match="no tensors of torch.complex32"):
        torch.zeros(2, dtype=torch.complex32).to("tenon")


def test_no_such_name():
    """A name that no installed package has: PyTorch is imported, and says why the device is missing."""
    done = subprocess.run([sys.executable, "-W", "always", "-c", "import torch; print(hasattr(torch, 'tenon'))"], capture_output=True, text=True,
                          env={**os.environ, "TENON_TORCH_NAME": "other"})
    assert done.stdout == "False\n", done.stderr
    assert "TENON_TORCH_NAME is 'other'; installed are tenon" in done.stderr


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margin_losses(reduction):
    """Their gradients are ops of their own: by one target a row, also weighted and squared, and by lists of targets that end early."""
    (x, on_device), one, weight = pair(5, 7), torch.randint(0, 7, (5,)), torch.rand(7)
    many = torch.tensor([[0, 3, -1, 2, 2, 2, 2], [6, 5, 4, 3, 2, 1, 0], [-1, 1, 1, 1, 1, 1, 1], [2, -1, -1, -1, -1, -1, -1], [1, 4, 6, -1, 0, 0, 0]])
    for loss in (lambda x: F.multi_margin_loss(x, one.to(x.device), reduction=reduction),
                 lambda x: F.multi_margin_loss(x, one.to(x.device), 2, 0.5, weight.to(x.device), reduction=reduction),
                 lambda x: F.multilabel_margin_loss(x, many.to(x.device), reduction=reduction)):
        gradients = []
        for each in (on_device, x):
            given = each.detach().requires_grad_()
            value = loss(given)
            gradients.append(torch.autograd.grad(value, given, torch.full_like(value, 0.7))[0])
        same(*gradients)


def test_log_of_sums_so_far():
    x, on_device = pair(4, 9)
    same(torch.logcumsumexp(on_device, 1), torch.logcumsumexp(x, 1))
