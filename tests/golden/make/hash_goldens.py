#!/usr/bin/env python3
"""Prints the golden rows of the model tests, computed by diffusers and transformers. See docs/goldens.md.

    python3 -m venv /tmp/goldens && /tmp/goldens/bin/pip install torch diffusers==0.42.1 transformers==5.24.0
    /tmp/goldens/bin/python tests/golden/make/hash_goldens.py [umt5] [dit] [vae] [scheduler] [wan]

A row is: name | shape | mean | mean of absolute values | dot | first four values | last four values.
"""

import importlib
import math
import os
import sys

os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")

import diffusers
import numpy as np
import torch
import transformers

MASK = (1 << 64) - 1
TIED = "encoder.embed_tokens.weight"  # a second name of shared.weight


def hashed(k, count):
    """u(k, 0..count-1) in float64."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) * np.uint64(0xD1342543DE82EF95)
        z += np.uint64((k + 1) * 0x9E3779B97F4A7C15 & MASK)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0


def given(j, *shape):
    """inp(j; shape)."""
    return torch.from_numpy(hashed(1000 + j, math.prod(shape)).astype(np.float32)).reshape(shape)


def parameters(model):
    return {name: p for name, p in model.named_parameters() if name != TIED}


def filled(model, first=0):
    """The k-th parameter in byte order of the names, counted from `first`, gets f(u(k, i))."""
    own = parameters(model)
    for k, name in enumerate(sorted(own, key=str.encode), first):
        parameter = own[name]
        u = hashed(k, parameter.numel())
        if name.endswith("scale_shift_table"):
            v = 0.5 * u
        elif name.endswith("gamma") or (name.endswith("weight") and parameter.dim() == 1):
            v = 1 + 0.1 * u
        elif name.endswith("relative_attention_bias.weight") or name == "shared.weight":
            v = u
        elif parameter.dim() >= 2:
            v = math.sqrt(3.0 / math.prod(parameter.shape[1:])) * u
        else:
            v = 0.1 * u
        parameter.data.copy_(torch.from_numpy(v.astype(np.float32)).reshape(parameter.shape))
    return model.eval().requires_grad_(False)


def title(name, model):
    own = parameters(model)
    print(f"\n{name}: {sum(p.numel() for p in own.values())} parameters in {len(own)} tensors")


def row(name, tensor):
    v = tensor.detach().double().contiguous().reshape(-1).numpy()
    dot = float(np.sum(v * hashed(9000, v.size)))
    ends = " | ".join(" ".join(f"{x:.6f}" for x in end) for end in (v[:4], v[-4:]))
    print(f"{name} | {'x'.join(map(str, tensor.shape))} | {v.mean():.6f} | {np.abs(v).mean():.6f} | {dot:.6f} | {ends}")


class Taps:
    """Prints the output (or first input) of modules while a model runs; with the call's number when `numbered`."""

    def __init__(self, numbered=False):
        self.numbered, self.calls, self.hooks = numbered, {}, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()

    def _print(self, name, value):
        n = self.calls.get(name, 0)
        self.calls[name] = n + 1
        row(f"{name}, chunk {n}" if self.numbered else name, value)

    def output(self, module, name):
        def hook(_module, _inputs, out):
            self._print(name, out[0] if isinstance(out, tuple) else out)

        self.hooks.append(module.register_forward_hook(hook))

    def input(self, module, name):
        self.hooks.append(module.register_forward_pre_hook(lambda _module, inputs: self._print(name, inputs[0])))


def umt5():
    config = transformers.UMT5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=3, feed_forward_proj="gated-gelu", dropout_rate=0.0
    )
    model = filled(transformers.UMT5EncoderModel(config))
    title("UMT5", model)
    n_real = 7
    ids = torch.tensor([[17, 5, 63, 2, 9, 33, 1, 0, 0, 0, 0, 0]])
    mask = (torch.arange(ids.shape[1]) < n_real).long()[None]
    with Taps() as taps:
        for i, block in enumerate(model.encoder.block):
            taps.output(block, f"block {i} out")
        hidden = model(ids, attention_mask=mask).last_hidden_state
    row("last_hidden_state", hidden)
    row("last_hidden_state, first 7 tokens", hidden[:, :n_real])
    hidden[:, n_real:] = 0
    row("prompt_embeds (zero padded)", hidden)


class FirstAttention:
    """Prints what the first attention of a run gets and gives, which no module's inputs show."""

    def __init__(self):
        self.module = importlib.import_module("diffusers.models.transformers.transformer_wan")
        self.attend, self.is_first = self.module.dispatch_attention_fn, True

    def __enter__(self):
        self.module.dispatch_attention_fn = self.tapped

    def __exit__(self, *_):
        self.module.dispatch_attention_fn = self.attend

    def tapped(self, q, k, v, **options):
        out = self.attend(q, k, v, **options)
        if self.is_first:
            row("block0 self q after RMSNorm+RoPE", q)
            row("block0 self k after RMSNorm+RoPE", k)
            row("block0 self attention out", out)
        self.is_first = False
        return out


def dit():
    small = dict(attention_head_dim=12, in_channels=4, out_channels=4, text_dim=16, ffn_dim=32, rope_max_seq_len=32)
    wide = dict(attention_head_dim=16, in_channels=48, out_channels=48, text_dim=32, ffn_dim=64, rope_max_seq_len=64)
    per_token = torch.full((1, 18), 937.0)
    per_token[:, :6] = 0  # the first latent frame is clean
    runs = [
        ("D1, t = 750", small, (1, 4, 2, 16, 16), (1, 12, 16), torch.tensor([750])),
        ("D2a, t per token: 0 in frame 0, else 937", wide, (1, 48, 3, 4, 6), (1, 16, 32), per_token),
        ("D2b, t = 937", wide, (1, 48, 3, 4, 6), (1, 16, 32), torch.tensor([937])),
    ]
    for name, config, latents, text, timestep in runs:
        model = filled(diffusers.WanTransformer3DModel(num_attention_heads=2, num_layers=2, freq_dim=256, **config))
        title(name, model)
        embedder, block = model.condition_embedder, model.blocks[0]
        with Taps() as taps, FirstAttention():
            taps.output(embedder.timesteps_proj, "sinusoid")
            taps.output(embedder.time_embedder, "temb")
            taps.output(embedder.time_proj, "timestep_proj")
            taps.output(embedder.text_embedder, "text embedder out")
            taps.input(block, "tokens after patch_embedding")
            taps.input(block.attn1, "block0 attn1 input")
            taps.output(block.attn1, "block0 attn1 out")
            taps.output(block.attn2, "block0 attn2 out")
            taps.output(block.ffn, "block0 ffn out")
            taps.output(block, "block0 out")
            taps.output(model.blocks[1], "block1 out")
            taps.output(model.norm_out, "norm_out out")
            taps.output(model.proj_out, "proj_out out")
            out = model(given(0, *latents), timestep, given(1, *text), return_dict=False)[0]
        row("MODEL OUTPUT", out)


def vae():
    common = dict(base_dim=8, dim_mult=[1, 2, 4, 4], num_res_blocks=1, temperal_downsample=[False, True, True])
    v22 = dict(decoder_base_dim=12, z_dim=48, is_residual=True, in_channels=12, out_channels=12, patch_size=2, scale_factor_spatial=16)
    runs = [
        ("V21", dict(z_dim=16), 16, 32, {"decode": (16, 8), "encode": (16, 8)}),
        ("V22", v22, 48, 64, {"decode": (48, 32), "encode": (24, 16)}),
    ]
    for name, config, z, size, tiles in runs:
        model = filled(diffusers.AutoencoderKLWan(**common, **config))
        title(name, model)
        video, latents = given(2, 1, 3, 9, size, size), given(3, 1, z, 3, 4, 4)
        with Taps(numbered=True) as taps:
            for part, blocks in (("encoder", model.encoder.down_blocks), ("decoder", model.decoder.up_blocks)):
                root = getattr(model, part)
                taps.output(root.conv_in, f"{part}.conv_in")
                for i, block in enumerate(blocks):
                    taps.output(block, f"{part}.{'down' if part == 'encoder' else 'up'}_blocks.{i}")
                taps.output(root.mid_block, f"{part}.mid_block")
                taps.output(root, f"{part} out")
            posterior = model.encode(video).latent_dist
            decoded = model.decode(latents, return_dict=False)[0]
        row("posterior moments", posterior.parameters)
        row("posterior mean, all frames", posterior.mode())
        row("DECODED video (clamped)", decoded)
        for call, (least, stride) in tiles.items():
            model.enable_tiling(least, least, stride, stride)
            tiled = model.decode(latents, return_dict=False)[0] if call == "decode" else model.encode(video).latent_dist.parameters
            row(f"tiled {call}{' moments' if call == 'encode' else ''}, min {least}, stride {stride}", tiled)


# A model that needs no weights, of the sample and the timestep.
def slope(x, t, sin):
    return 0.8 * x + 0.3 * sin(3 * x) + 0.1 * t / 1000


def print_grid(name, sigmas, timesteps):
    print(f"\n{name}")
    print("sigmas   ", " ".join(f"{s:.8f}" for s in sigmas))
    print("timesteps", " ".join(f"{t:.6f}".rstrip("0").rstrip(".") for t in timesteps))


def scheduler():
    flow = dict(prediction_type="flow_prediction", use_flow_sigmas=True)
    kinds = [
        ("UniPC", lambda shift: diffusers.UniPCMultistepScheduler(flow_shift=shift, solver_order=2, solver_type="bh2", **flow)),
        ("DPM++ 2M", lambda shift: diffusers.DPMSolverMultistepScheduler(flow_shift=shift, solver_order=2, **flow)),
        ("Euler", lambda shift: diffusers.FlowMatchEulerDiscreteScheduler(shift=shift)),
    ]
    for name, make in kinds:
        for shift, steps in ((3.0, 4), (3.0, 8), (5.0, 1), (5.0, 2), (5.0, 4), (5.0, 8)):
            solver = make(shift)
            solver.set_timesteps(steps)
            print_grid(f"{name} shift {shift} steps {steps}", solver.sigmas.tolist(), solver.timesteps.tolist())
            x = torch.tensor([[1.0, -0.5, 0.25, 2.0]])
            for i, t in enumerate(solver.timesteps):
                x = solver.step(slope(x, t.float(), torch.sin), t, x, return_dict=False)[0]
                print(f"step {i}   ", " ".join(f"{value:.7f}" for value in x[0].tolist()))
        # Which integer a timestep is truncated to hangs on the last bit: one number over all counts of steps.
        for shift in (1.0, 3.0, 5.0, 8.0):
            total = 0
            for steps in range(2, 201):
                solver = make(shift)
                solver.set_timesteps(steps)
                total += sum((i + 1) * int(t) for i, t in enumerate(solver.timesteps.tolist()))
            print(f"{name} shift {shift} timesteps over 2..200 steps: {total}")


def wan_grid(kind, shift, steps):
    """Sigmas (float64) of the original Wan code's two options, without the final 0."""
    if kind == "UniPC":
        # The two ends go through float32, as its scheduler stores them: 1 - alpha for alpha = 1/1000 and 1.
        largest, smallest = (float(np.float32(1 - alpha)) for alpha in (1 / 1000, 1.0))
        sigmas = np.linspace(largest, smallest, steps + 1)[:-1]
    else:
        sigmas = np.linspace(1, 0, steps + 1)[:-1]
    return shift * sigmas / (1 + (shift - 1) * sigmas)


def dpm_2m(sigmas, timesteps, x):
    """DPM-Solver++ (2M, midpoint) straight from the paper, in float64: x after every step."""
    lam = lambda s: np.log((1 - s) / s) if s > 0 else np.inf
    before, trace = None, []
    for i, t in enumerate(timesteps):
        s, s_next = sigmas[i], sigmas[i + 1]
        clean = x - s * slope(x, t, np.sin)
        h = lam(s_next) - lam(s)
        mix = clean
        if before is not None and s_next > 0:
            mix = clean + 0.5 * (clean - before[0]) * h / (lam(s) - before[1])
        x = s_next / s * x - (1 - s_next) * np.expm1(-h) * mix
        before = (clean, lam(s))
        trace.append(x)
    return trace


def wan():
    for kind in ("UniPC", "DPM++"):
        for shift, steps in ((3.0, 4), (3.0, 8), (5.0, 4), (5.0, 8)):
            sigmas = np.append(wan_grid(kind, shift, steps), 0.0)
            timesteps = (sigmas[:-1] * 1000).astype(np.int64)
            sigmas = sigmas.astype(np.float32)
            print_grid(f"original Wan {kind} shift {shift} steps {steps}", sigmas, timesteps)
            if kind == "DPM++":
                with np.errstate(divide="ignore"):
                    for i, x in enumerate(dpm_2m(sigmas.astype(float), timesteps, np.array([1.0, -0.5, 0.25, 2.0]))):
                        print(f"step {i}   ", " ".join(f"{value:.7f}" for value in x))
        for shift in (1.0, 3.0, 5.0, 8.0):
            total = 0
            for steps in range(2, 201):
                timesteps = (wan_grid(kind, shift, steps) * 1000).astype(np.int64)
                total += sum((i + 1) * int(t) for i, t in enumerate(timesteps))
            print(f"original Wan {kind} shift {shift} timesteps over 2..200 steps: {total}")


def main():
    tables = {"umt5": umt5, "dit": dit, "vae": vae, "scheduler": scheduler, "wan": wan}
    wanted = sys.argv[1:] or list(tables)
    unknown = [name for name in wanted if name not in tables]
    if unknown:
        sys.exit(f"unknown table {unknown[0]} ({', '.join(tables)})")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    print(f"torch {torch.__version__}, diffusers {diffusers.__version__}, transformers {transformers.__version__}")
    with torch.no_grad():
        for name in wanted:
            tables[name]()


if __name__ == "__main__":
    main()
