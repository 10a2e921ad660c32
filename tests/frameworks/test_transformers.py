"""Hugging Face's Trainer with a callback that steps a profiler."""

from __future__ import annotations

import torch
from conftest import counts, file_counts, need, with_both

transformers = need("transformers")
need("accelerate")  # the Trainer's own requirement


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        tokens = torch.arange(index, index + 8) % 50
        return {"input_ids": tokens, "labels": tokens}


def test_a_profiler_callback(tmp_path):
    class Steps(transformers.TrainerCallback):
        def __init__(self, prof):
            self.prof = prof

        def on_step_end(self, arguments, state, control, **others):
            self.prof.step()

    def program(profiler):
        torch.manual_seed(0)
        config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2)
        model = transformers.GPT2LMHeadModel(config)
        folder = tmp_path / profiler.__name__
        arguments = transformers.TrainingArguments(
            output_dir=str(folder / "out"),
            max_steps=6,
            per_device_train_batch_size=4,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
            logging_strategy="no",
        )
        files = []

        def ready(prof):
            files.append(folder / f"{len(files)}.json")
            prof.export_chrome_trace(str(files[-1]))

        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU],
            schedule=profiler.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1),
            on_trace_ready=ready,
            profile_memory=True,
            with_stack=False,
            record_shapes=True,
        ) as prof:
            trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Data(), callbacks=[Steps(prof)])
            trainer.train()
        return counts(prof), [file_counts(path) for path in files], prof.step_num

    theirs, ours = with_both(program)
    assert ours == theirs
    assert theirs[2] == 6 and theirs[0]["aten::addmm"] > 0
