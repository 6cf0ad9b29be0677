"""Networks of torchvision and transformers by their constructors, with random weights, where these packages are installed: losses of five
steps as in eager mode, and no op left to PyTorch.

    python -m pip install --no-deps torchvision==0.28.0; python -m pip install transformers

With TENON_FULL=1 GPT-2 of 124 million parameters too."""

import copy
import os
import warnings

import pytest
import torch

import tenon_torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        torchvision = pytest.importorskip("torchvision")
    except RuntimeError:
        # Its wheel on PyPI is linked for CUDA: beside a PyTorch for CPUs its own ops do not load, and its import wants two of them. Its
        # networks use none.
        for op in ("nms", "qnms"):
            torch.library.define(f"torchvision::{op}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        torchvision = pytest.importorskip("torchvision")
    transformers = pytest.importorskip("transformers")

SMALL = {"num_hidden_layers": 2, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4}
STILL = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}


def images(size):
    return torch.randn(8, 3, size, size), torch.arange(8)


def by_images(network, size=64):
    """In f64: in f32 a last bit may decide which elements a ReLU lets through, and with them whole gradients. Without dropout."""
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout | torchvision.ops.StochasticDepth):
            module.p = 0.0
    x, labels = images(size)
    x = x.double()
    return network.double(), lambda f: torch.nn.functional.cross_entropy(f(x), labels)


def by_tokens(model, **inputs):
    ids = torch.randint(0, model.config.vocab_size, (2, 32))
    inputs = {"input_ids": ids, "labels": ids} | inputs
    return model, lambda f: f(**inputs).loss


def gpt2(**sizes):
    """Of GPT-2's width and, by default, depth and vocabulary."""
    return by_tokens(transformers.GPT2LMHeadModel(transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **sizes)))


def vision():
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**SMALL, **STILL, image_size=32, patch_size=8, num_labels=10))
    x, labels = images(32)
    return model, lambda f: f(pixel_values=x, labels=labels).loss


NETWORKS = {
    "resnet18": lambda: by_images(torchvision.models.resnet18(num_classes=10)),
    "mobilenet_v3_small": lambda: by_images(torchvision.models.mobilenet_v3_small(num_classes=10)),
    "squeezenet1_1": lambda: by_images(torchvision.models.squeezenet1_1(num_classes=10)),
    "vit": lambda: by_images(torchvision.models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10), 32),
    "GPT-2 of two layers": lambda: gpt2(n_layer=2, vocab_size=1000, n_positions=64),
    "BERT": lambda: by_tokens(transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL, **STILL, vocab_size=500)), labels=torch.tensor([0, 1])),
    "Llama": lambda: by_tokens(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, num_key_value_heads=2, vocab_size=500))),
    "Qwen2": lambda: by_tokens(transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SMALL, num_key_value_heads=2, vocab_size=500))),
    "T5": lambda: by_tokens(transformers.T5ForConditionalGeneration(transformers.T5Config(num_layers=2, d_model=64, d_ff=128, d_kv=16, num_heads=4, vocab_size=300, dropout_rate=0,
                                                                                          decoder_start_token_id=0))),
    "ViT": vision,
}
if "TENON_FULL" in os.environ:
    NETWORKS["GPT-2"] = gpt2


@pytest.mark.parametrize("name", NETWORKS)
def test_five_steps(name, compiled):
    eager, loss_of = NETWORKS[name]()
    model = copy.deepcopy(eager)
    losses = []
    for network, function in ((eager, eager), (model, compiled(model))):
        optimizer = torch.optim.SGD(network.parameters(), 1e-3, momentum=0.9)
        steps = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = loss_of(function)
            loss.backward()
            optimizer.step()
            steps.append(loss.item())
        losses.append(torch.tensor(steps))
    torch.testing.assert_close(*losses, rtol=1e-5, atol=0)
    assert losses[0][-1] < losses[0][0]
    assert tenon_torch.counters.calls >= 10 and not tenon_torch.counters.fallbacks
