"""Language models: prefill, decoding, training."""

import torch
import torch.nn.functional as F
from common import LlamaBlock, graphed, pair
from torch import nn


def llama(s, layers):
    width, heads = s.pick(2048, 32), s.pick(16, 2)
    blocks = nn.ModuleList(LlamaBlock(width, heads) for _ in range(layers)).to(s.device, torch.bfloat16)
    head = nn.Linear(width, s.pick(32000, 64), bias=False).to(s.device, torch.bfloat16)
    return width, heads, blocks, head


@pair
def llama_decode_graph(s, changed):
    """One position of 8 blocks with a cache; the change: a CUDA graph."""
    width, heads, blocks, head = llama(s, s.pick(8, 2))
    caches = [tuple(s.randn(1, heads, s.pick(1024, 8), width // heads) for _ in range(2)) for _ in blocks]
    x = s.randn(1, 1, width)

    @torch.inference_mode()
    def decode():
        h = x
        for block, cache in zip(blocks, caches):
            h = block(h, cache)
        return head(h)

    return graphed(s, decode) if changed else decode


@pair
def llama_prefill_compile_block(s, changed):
    """2048 positions of 4 blocks; the change: each block is compiled."""
    width, _, blocks, head = llama(s, s.pick(4, 2))
    run = [s.compile(block) if changed else block for block in blocks]
    x = s.randn(2, s.pick(2048, 16), width)

    @torch.inference_mode()
    def step():
        h = x
        for block in run:
            h = block(h)
        return head(h[:, -1])

    return step


@pair
def gpt_training_without_item(s, changed):
    """Training that logs loss.item() in each step, before the backward; the change: it does not."""
    width, _, blocks, head = llama(s, s.pick(4, 2))
    parameters = [*blocks.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
    x = s.randn(1, s.pick(256, 8), width)
    y = torch.randint(0, s.pick(32000, 64), (s.pick(256, 8),), device=s.device)
    logged = []

    def step():
        h = x
        for block in blocks:
            h = block(h)
        loss = F.cross_entropy(head(h)[0].float(), y)
        if not changed:
            logged.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


@pair
def bert_training_bf16(s, changed):
    """BERT of the transformers library, masked words, in float32; the change: autocast to bf16."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(hidden_size=s.pick(768, 32), num_hidden_layers=s.pick(6, 1), num_attention_heads=s.pick(12, 2),
                        intermediate_size=s.pick(3072, 64), vocab_size=s.pick(30522, 64), hidden_dropout_prob=0.0,
                        attention_probs_dropout_prob=0.0)
    model = BertForMaskedLM(config).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    words = torch.randint(0, config.vocab_size, (s.pick(32, 2), s.pick(128, 8)), device=s.device)

    def step():
        with torch.autocast(s.device, torch.bfloat16, enabled=changed):
            loss = model(input_ids=words, labels=words).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


@pair
def lstm_batch(s, changed):
    """Training of a two-layer LSTM with 32 sequences; the change: 64. A step then does twice the work."""
    rows, width, length = s.pick(64, 4) if changed else s.pick(32, 2), s.pick(512, 8), s.pick(64, 4)
    lstm, head = nn.LSTM(width, width, 2, batch_first=True).to(s.device), nn.Linear(width, s.pick(10000, 16)).to(s.device)
    optimizer = torch.optim.AdamW([*lstm.parameters(), *head.parameters()], lr=1e-4, fused=True)
    x = torch.randn(rows, length, width, device=s.device)
    y = torch.randint(0, s.pick(10000, 16), (rows * length,), device=s.device)

    def step():
        loss = F.cross_entropy(head(lstm(x)[0]).flatten(0, 1), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step
