#!/usr/bin/env python3
"""Prints the golden rows of models with two experts, computed by diffusers' own pipelines. See docs/goldens.md.

    /tmp/goldens/bin/python tests/golden/make/pipeline_goldens.py

Four steps of UniPC with shift 3 and guidance 5 over 9 frames of 32 x 48, from noise sqrt(3) inp(10; 1,16,3,4,6), prompt rows
inp(11; 1,16,32) and negative rows inp(12; 1,16,32). The weights of the second expert are those of the hash from k = 500 on.
"""

import math

import diffusers
import torch
from hash_goldens import filled, given, row

VAE = dict(base_dim=8, z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=1, temperal_downsample=[False, True, True])


def expert(in_channels, first):
    shape = dict(attention_head_dim=16, num_attention_heads=2, num_layers=2, freq_dim=256, text_dim=32, ffn_dim=64)
    return filled(
        diffusers.WanTransformer3DModel(in_channels=in_channels, out_channels=16, rope_max_seq_len=64, **shape), first
    )


def run(name, kind, in_channels, boundary, **inputs):
    print(f"\n{name}")
    pipeline = kind(
        tokenizer=None,
        text_encoder=None,
        vae=filled(diffusers.AutoencoderKLWan(**VAE)),
        scheduler=diffusers.UniPCMultistepScheduler(
            flow_shift=3.0, prediction_type="flow_prediction", use_flow_sigmas=True, solver_order=2, solver_type="bh2"
        ),
        transformer=expert(in_channels, 0),
        transformer_2=expert(in_channels, 500),
        boundary_ratio=boundary,
    )
    pipeline.set_progress_bar_config(disable=True)
    if "image" in inputs:
        noise = torch.zeros(1, 16, 3, 4, 6)
        _, condition = pipeline.prepare_latents(inputs["image"], 1, height=32, width=48, num_frames=9, latents=noise)
        row("condition", condition)

    def after_step(_pipeline, i, t, values):
        row(f"step {i} (t={int(t)}) latents", values["latents"])
        return values

    pixels = pipeline(
        prompt_embeds=given(11, 1, 16, 32),
        negative_prompt_embeds=given(12, 1, 16, 32),
        height=32,
        width=48,
        num_frames=9,
        num_inference_steps=4,
        guidance_scale=5.0,
        latents=(given(10, 1, 16, 3, 4, 6).double() * math.sqrt(3)).float(),
        output_type="pt",
        callback_on_step_end=after_step,
        **inputs,
    ).frames
    row("decoded", pixels.permute(0, 2, 1, 3, 4) * 2 - 1)


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    print(f"torch {torch.__version__}, diffusers {diffusers.__version__}")
    with torch.no_grad():
        run("P4", diffusers.WanPipeline, 16, 0.875)
        run("P5", diffusers.WanImageToVideoPipeline, 36, 0.9, image=given(20, 1, 3, 32, 48))


if __name__ == "__main__":
    main()
