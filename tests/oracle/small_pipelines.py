"""Small random pipelines of every served kind, saved by diffusers itself, and the clips that diffusers makes of them."""

import importlib.util
import os
import pathlib

import diffusers
import numpy as np
import sentencepiece
import torch
import transformers

SOURCE = pathlib.Path(os.environ.get("MEROPE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
TEXT_ROWS = 512

VAE_21 = dict(base_dim=8, z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=2, temperal_downsample=[False, True, True])
VAE_22 = dict(
    base_dim=8,
    decoder_base_dim=12,
    z_dim=48,
    dim_mult=[1, 2, 4, 4],
    num_res_blocks=2,
    temperal_downsample=[False, True, True],
    is_residual=True,
    in_channels=12,
    out_channels=12,
    patch_size=2,
    scale_factor_spatial=16,
    latents_mean=[0.01 * i - 0.2 for i in range(48)],
    latents_std=[0.5 + 0.02 * i for i in range(48)],
)

# name -> pipeline class, input channels, autoencoder, flow shift, boundary, expand_timesteps
KINDS = {
    "t2v": (diffusers.WanPipeline, 16, VAE_21, 3.0, None, False),
    "t2v_experts": (diffusers.WanPipeline, 16, VAE_21, 3.0, 0.875, False),
    "i2v_experts": (diffusers.WanImageToVideoPipeline, 36, VAE_21, 5.0, 0.9, False),
    "ti2v": (diffusers.WanImageToVideoPipeline, 48, VAE_22, 5.0, None, True),
}


def tokenizer_model():
    """The SentencePiece model of the project's toy checkpoint, as bytes."""
    path = SOURCE / "worker" / "tools" / "make_toy_checkpoint.py"
    spec = importlib.util.spec_from_file_location("make_toy_checkpoint", path)
    toy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(toy)
    return toy.sentencepiece_model()


def lively(model):
    """Weights for which every part shows: PyTorch's own start leaves norms at one and biases small."""
    for name, parameter in model.named_parameters():
        if name.endswith("gamma") or (name.endswith("weight") and parameter.dim() == 1):
            parameter.data += 0.1 * torch.randn_like(parameter)
        elif name.endswith("bias"):
            parameter.data = 0.1 * torch.randn_like(parameter)
    return model.eval().requires_grad_(False)


def transformer(in_channels, latent_channels):
    return lively(
        diffusers.WanTransformer3DModel(
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=in_channels,
            out_channels=latent_channels,
            text_dim=32,
            freq_dim=64,
            ffn_dim=48,
            num_layers=3,
            rope_max_seq_len=64,
        )
    )


def build(kind):
    pipeline_class, in_channels, vae, shift, boundary, expand_timesteps = KINDS[kind]
    torch.manual_seed(sorted(KINDS).index(kind))
    _, n_pieces = tokenizer_model()
    text_config = transformers.UMT5Config(
        vocab_size=n_pieces + 3, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=3, feed_forward_proj="gated-gelu"
    )
    settings = dict(boundary_ratio=boundary)
    if expand_timesteps:
        settings["expand_timesteps"] = True
    return pipeline_class(
        tokenizer=None,
        text_encoder=lively(transformers.UMT5EncoderModel(text_config)),
        transformer=transformer(in_channels, vae["z_dim"]),
        transformer_2=transformer(in_channels, vae["z_dim"]) if boundary else None,
        vae=lively(diffusers.AutoencoderKLWan(**vae)),
        scheduler=diffusers.UniPCMultistepScheduler(
            flow_shift=shift, prediction_type="flow_prediction", use_flow_sigmas=True, solver_order=2, solver_type="bh2"
        ),
        **settings,
    )


def save(pipeline, folder, max_shard_size="100KB"):
    """save_pretrained, with the tokenizer put where a published checkpoint has it."""
    folder = pathlib.Path(folder)
    pipeline.save_pretrained(folder, max_shard_size=max_shard_size)
    (folder / "tokenizer").mkdir(exist_ok=True)
    (folder / "tokenizer" / "spiece.model").write_bytes(tokenizer_model()[0])
    index = folder / "model_index.json"
    text = index.read_text()
    absent = '"tokenizer": [\n    null,\n    null\n  ]'
    assert absent in text
    index.write_text(text.replace(absent, '"tokenizer": ["transformers", "T5TokenizerFast"]'))


def prompt_embeds(pipeline, prompt):
    """The encoder's rows of the real tokens, then zeros, as the pipelines make them."""
    tokens = sentencepiece.SentencePieceProcessor(model_proto=tokenizer_model()[0])
    ids = tokens.encode(prompt) + [tokens.eos_id()]
    padded = torch.tensor([ids + [0] * (TEXT_ROWS - len(ids))])
    mask = (torch.arange(TEXT_ROWS) < len(ids)).long()[None]
    rows = pipeline.text_encoder(padded, mask).last_hidden_state
    rows[:, len(ids) :] = 0
    return rows


def picture(width, height):
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([(3 * x + y) % 256, (2 * y) % 256, (x * y // 7) % 256], -1).astype(np.uint8)


def clip(pipeline, width, height, frames, steps, seed, guidance, prompt, negative, image=None):
    """uint8 [frames, height, width, 3]."""
    pipeline.set_progress_bar_config(disable=True)
    inputs = {}
    if image is not None:
        # In [0, 1], which the pipelines map to [-1, 1].
        inputs["image"] = (torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255.0)
    with torch.no_grad():
        pixels = pipeline(
            prompt_embeds=prompt_embeds(pipeline, prompt),
            negative_prompt_embeds=prompt_embeds(pipeline, negative),
            width=width,
            height=height,
            num_frames=frames,
            num_inference_steps=steps,
            guidance_scale=guidance,
            generator=torch.Generator().manual_seed(seed),
            output_type="pt",
            **inputs,
        ).frames[0]
    return (pixels.permute(0, 2, 3, 1) * 255).round().to(torch.uint8).numpy()
