#!/usr/bin/env python3
"""Writes a small checkpoint in the layout of Wan2.2-TI2V-5B-Diffusers, with a MeRoPE camera branch.

Every part is of the real kind (DiT with heads of 128, VAE 2.2, UMT5, SentencePiece unigram, UniPC), only narrow and shallow, so
that the programs read and run it exactly as they do a trained one, in seconds on a CPU. The weights are spread evenly around
zero by a hash of their names: the same bytes on every machine, finite activations, and pictures that mean nothing.

Needs Python 3.9 or later and nothing else. Usage: make_toy_checkpoint.py FOLDER
"""

import argparse
import array
import hashlib
import json
import math
import os
import pathlib
import struct
import sys

DIM = 256  # two heads of 128, the head width that MeRoPE's partition 36 + 36 + 24 + 32 is made for
HEADS = 2
LAYERS = 4
FFN = 512
TEXT_DIM = 64
LATENT_CHANNELS = 48
CAMERA_BLOCKS = [1, 3]
CAMERA_COMPRESSION = 2

TRANSFORMER_CONFIG = {
    "_class_name": "WanTransformer3DModel",
    "attention_head_dim": DIM // HEADS,
    "cross_attn_norm": True,
    "eps": 1e-06,
    "ffn_dim": FFN,
    "freq_dim": 256,
    "in_channels": LATENT_CHANNELS,
    "num_attention_heads": HEADS,
    "num_layers": LAYERS,
    "out_channels": LATENT_CHANNELS,
    "patch_size": [1, 2, 2],
    "qk_norm": "rms_norm_across_heads",
    "rope_max_seq_len": 1024,
    "text_dim": TEXT_DIM,
    "camera_encoding": {
        "name": "merope",
        "compression": CAMERA_COMPRESSION,
        "num_heads": DIM // CAMERA_COMPRESSION // 128,
        "attention_head_dim": 128,
        "injection_blocks": CAMERA_BLOCKS,
    },
}

VAE_CONFIG = {
    "_class_name": "AutoencoderKLWan",
    "attn_scales": [],
    "base_dim": 8,
    "clip_output": False,
    "decoder_base_dim": 12,
    "dim_mult": [1, 2, 4, 4],
    "dropout": 0.0,
    "in_channels": 12,
    "is_residual": True,
    "latents_mean": [round(0.01 * i - 0.2, 4) for i in range(LATENT_CHANNELS)],
    "latents_std": [round(0.5 + 0.02 * i, 4) for i in range(LATENT_CHANNELS)],
    "num_res_blocks": 1,
    "out_channels": 12,
    "patch_size": 2,
    "scale_factor_spatial": 16,
    "scale_factor_temporal": 4,
    "temperal_downsample": [False, True, True],
    "z_dim": LATENT_CHANNELS,
}

SCHEDULER_CONFIG = {
    "_class_name": "UniPCMultistepScheduler",
    "disable_corrector": [],
    "final_sigmas_type": "zero",
    "flow_shift": 5.0,
    "lower_order_final": True,
    "num_train_timesteps": 1000,
    "predict_x0": True,
    "prediction_type": "flow_prediction",
    "solver_order": 2,
    "solver_p": None,
    "solver_type": "bh2",
    "thresholding": False,
    "timestep_spacing": "linspace",
    "use_beta_sigmas": False,
    "use_exponential_sigmas": False,
    "use_flow_sigmas": True,
    "use_karras_sigmas": False,
}

MODEL_INDEX = {
    "_class_name": "WanPipeline",
    # Defaults of requests: small enough for a CPU.
    "_merope": {
        "name": "merope-toy",
        "trained": False,
        "width": 512,
        "height": 288,
        "fps": 16,
        "steps": 8,
        "guidance_scale": 3.0,
    },
    "boundary_ratio": None,
    "expand_timesteps": True,
    "scheduler": ["diffusers", "UniPCMultistepScheduler"],
    "text_encoder": ["transformers", "UMT5EncoderModel"],
    "tokenizer": ["transformers", "T5TokenizerFast"],
    "transformer": ["diffusers", "WanTransformer3DModel"],
    "transformer_2": [None, None],
    "vae": ["diffusers", "AutoencoderKLWan"],
}

WORDS = """the a of and in to with on at is from through along over behind between left right straight forward slowly camera moves
turns drives car cars street road city night day rain snow fog sun light lights sky tree trees house houses building buildings
people walking bridge river mountain forest field beach sea water window traffic truck bus tram bicycle pedestrian crossing lane
highway tunnel square market park morning evening winter summer autumn spring red green blue white black grey bright dark wet
old modern narrow wide view realistic high low quality blurry static distorted watermark video frame motion scene""".split()


def text_encoder_config(n_pieces):
    return {
        "architectures": ["UMT5EncoderModel"],
        "d_ff": 128,
        "d_kv": 16,
        "d_model": TEXT_DIM,
        "dense_act_fn": "gelu_new",
        "eos_token_id": 1,
        "feed_forward_proj": "gated-gelu",
        "is_gated_act": True,
        "layer_norm_epsilon": 1e-06,
        "model_type": "umt5",
        "num_heads": 4,
        "num_layers": 2,
        "pad_token_id": 0,
        "relative_attention_max_distance": 128,
        "relative_attention_num_buckets": 32,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        # Rounded up: as in the real model, the embedding has rows that no piece uses.
        "vocab_size": (n_pieces + 63) // 64 * 64,
    }


# ---- tensor names and shapes -------------------------------------------------------------------------------------------------


class Shapes(dict):
    def linear(self, name, n_in, n_out):
        self[f"{name}.weight"] = (n_out, n_in)
        self[f"{name}.bias"] = (n_out,)

    def conv(self, name, n_in, n_out, *kernel):
        self[f"{name}.weight"] = (n_out, n_in, *kernel)
        self[f"{name}.bias"] = (n_out,)

    def vector(self, name, n):
        self[name] = (n,)


def transformer_shapes():
    shapes = Shapes()
    shapes.conv("patch_embedding", LATENT_CHANNELS, DIM, 1, 2, 2)
    shapes.linear("condition_embedder.time_embedder.linear_1", 256, DIM)
    shapes.linear("condition_embedder.time_embedder.linear_2", DIM, DIM)
    shapes.linear("condition_embedder.time_proj", DIM, 6 * DIM)
    shapes.linear("condition_embedder.text_embedder.linear_1", TEXT_DIM, DIM)
    shapes.linear("condition_embedder.text_embedder.linear_2", DIM, DIM)
    for i in range(LAYERS):
        block = f"blocks.{i}"
        shapes[f"{block}.scale_shift_table"] = (1, 6, DIM)
        for attention in ("attn1", "attn2"):
            for part in ("to_q", "to_k", "to_v", "to_out.0"):
                shapes.linear(f"{block}.{attention}.{part}", DIM, DIM)
            shapes.vector(f"{block}.{attention}.norm_q.weight", DIM)
            shapes.vector(f"{block}.{attention}.norm_k.weight", DIM)
        shapes.vector(f"{block}.norm2.weight", DIM)
        shapes.vector(f"{block}.norm2.bias", DIM)
        shapes.linear(f"{block}.ffn.net.0.proj", DIM, FFN)
        shapes.linear(f"{block}.ffn.net.2", FFN, DIM)
        if i in CAMERA_BLOCKS:
            width = DIM // CAMERA_COMPRESSION
            for part in ("to_q", "to_k", "to_v"):
                shapes.linear(f"{block}.cam_attn.{part}", DIM, width)
            # Zero before training; here it is not, so that the trajectory changes the picture.
            shapes.linear(f"{block}.cam_attn.to_out", width, DIM)
    shapes["scale_shift_table"] = (1, 2, DIM)
    shapes.linear("proj_out", DIM, 4 * LATENT_CHANNELS)
    return shapes


def vae_shapes():
    shapes = Shapes()
    mults = VAE_CONFIG["dim_mult"]
    temporal = VAE_CONFIG["temperal_downsample"]
    n_blocks = VAE_CONFIG["num_res_blocks"]
    channels = VAE_CONFIG["in_channels"]
    z = VAE_CONFIG["z_dim"]

    def resnet(name, n_in, n_out):
        shapes[f"{name}.norm1.gamma"] = (n_in, 1, 1, 1)
        shapes.conv(f"{name}.conv1", n_in, n_out, 3, 3, 3)
        shapes[f"{name}.norm2.gamma"] = (n_out, 1, 1, 1)
        shapes.conv(f"{name}.conv2", n_out, n_out, 3, 3, 3)
        if n_in != n_out:
            shapes.conv(f"{name}.conv_shortcut", n_in, n_out, 1, 1, 1)

    def middle(name, width):
        resnet(f"{name}.resnets.0", width, width)
        shapes[f"{name}.attentions.0.norm.gamma"] = (width, 1, 1)
        shapes.conv(f"{name}.attentions.0.to_qkv", width, 3 * width, 1, 1)
        shapes.conv(f"{name}.attentions.0.proj", width, width, 1, 1)
        resnet(f"{name}.resnets.1", width, width)

    base = VAE_CONFIG["base_dim"]
    shapes.conv("encoder.conv_in", channels, base, 3, 3, 3)
    width = base
    for stage, mult in enumerate(mults):
        block = f"encoder.down_blocks.{stage}"
        for j in range(n_blocks):
            resnet(f"{block}.resnets.{j}", width, base * mult)
            width = base * mult
        if stage + 1 < len(mults):
            shapes.conv(f"{block}.downsampler.resample.1", width, width, 3, 3)
            if temporal[stage]:
                shapes.conv(f"{block}.downsampler.time_conv", width, width, 3, 1, 1)
    middle("encoder.mid_block", width)
    shapes["encoder.norm_out.gamma"] = (width, 1, 1, 1)
    shapes.conv("encoder.conv_out", width, 2 * z, 3, 3, 3)
    shapes.conv("quant_conv", 2 * z, 2 * z, 1, 1, 1)

    base = VAE_CONFIG["decoder_base_dim"]
    shapes.conv("post_quant_conv", z, z, 1, 1, 1)
    width = base * mults[-1]
    shapes.conv("decoder.conv_in", z, width, 3, 3, 3)
    middle("decoder.mid_block", width)
    for stage, mult in enumerate(reversed(mults)):
        block = f"decoder.up_blocks.{stage}"
        for j in range(n_blocks + 1):
            resnet(f"{block}.resnets.{j}", width, base * mult)
            width = base * mult
        if stage + 1 < len(mults):
            shapes.conv(f"{block}.upsampler.resample.1", width, width, 3, 3)
            if temporal[len(mults) - 2 - stage]:
                shapes.conv(f"{block}.upsampler.time_conv", width, 2 * width, 3, 1, 1)
    shapes["decoder.norm_out.gamma"] = (width, 1, 1, 1)
    shapes.conv("decoder.conv_out", width, channels, 3, 3, 3)
    return shapes


def text_encoder_shapes(config):
    d, inner, ff = config["d_model"], config["num_heads"] * config["d_kv"], config["d_ff"]
    shapes = Shapes()
    shapes["shared.weight"] = (config["vocab_size"], d)
    for i in range(config["num_layers"]):
        layer = f"encoder.block.{i}.layer"
        shapes.vector(f"{layer}.0.layer_norm.weight", d)
        for part in ("q", "k", "v"):
            shapes[f"{layer}.0.SelfAttention.{part}.weight"] = (inner, d)
        shapes[f"{layer}.0.SelfAttention.o.weight"] = (d, inner)
        buckets = (config["relative_attention_num_buckets"], config["num_heads"])
        shapes[f"{layer}.0.SelfAttention.relative_attention_bias.weight"] = buckets
        shapes.vector(f"{layer}.1.layer_norm.weight", d)
        shapes[f"{layer}.1.DenseReluDense.wi_0.weight"] = (ff, d)
        shapes[f"{layer}.1.DenseReluDense.wi_1.weight"] = (ff, d)
        shapes[f"{layer}.1.DenseReluDense.wo.weight"] = (d, ff)
    shapes.vector("encoder.final_layer_norm.weight", d)
    return shapes


# ---- weights -----------------------------------------------------------------------------------------------------------------


def spread(name, shape):
    """Centre and half width of a tensor's values: variance is kept from layer to layer, norms stay near one."""
    if name.endswith("scale_shift_table"):
        return 0.0, 0.5
    if name.endswith("gamma") or (name.endswith("weight") and len(shape) == 1):
        return 1.0, 0.1
    if name.endswith("relative_attention_bias.weight") or name == "shared.weight":
        return 0.0, 1.0
    if len(shape) >= 2:
        return 0.0, math.sqrt(3.0 / math.prod(shape[1:]))
    return 0.0, 0.1


def values(component, name, shape):
    """Little-endian float32 bytes, even over the spread, from an extendable hash of the name."""
    count = math.prod(shape)
    draws = array.array("H", hashlib.shake_256(f"{component}/{name}".encode()).digest(2 * count))
    if sys.byteorder == "big":
        draws.byteswap()
    centre, half_width = spread(name, shape)
    step = half_width / 32768
    lowest = centre - 32767.5 * step
    floats = array.array("f", [lowest + draw * step for draw in draws])
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tobytes()


def as_bfloat16(floats):
    """The upper halves of float32 values."""
    halves = bytearray(len(floats) // 2)
    halves[0::2] = floats[2::4]
    halves[1::2] = floats[3::4]
    return bytes(halves)


# ---- files -------------------------------------------------------------------------------------------------------------------


def write(path, content):
    """Replaces the file in one step: a worker may have the old one mapped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_bytes(content)
    os.replace(new, path)


def write_json(path, value):
    write(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def write_safetensors(path, component, shapes, dtype):
    header, chunks, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name in sorted(shapes):
        content = values(component, name, shapes[name])
        if dtype == "BF16":
            content = as_bfloat16(content)
        header[name] = {"dtype": dtype, "shape": list(shapes[name]), "data_offsets": [at, at + len(content)]}
        chunks.append(content)
        at += len(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write(path, struct.pack("<Q", len(text)) + text + b"".join(chunks))


def write_shards(folder, stem, component, shapes, n_shards):
    names = sorted(shapes)
    total = sum(math.prod(shape) for shape in shapes.values())
    shards, filled = [{} for _ in range(n_shards)], 0
    for name in names:
        shards[min(filled * n_shards // total, n_shards - 1)][name] = shapes[name]
        filled += math.prod(shapes[name])
    weight_map = {}
    for i, shard in enumerate(shards):
        file = f"{stem}-{i + 1:05d}-of-{n_shards:05d}.safetensors"
        write_safetensors(folder / file, component, shard, "F32")
        weight_map.update({name: file for name in shard})
    write_json(folder / f"{stem}.safetensors.index.json", {"metadata": {"total_size": 4 * total}, "weight_map": weight_map})


def sentencepiece_model():
    """A unigram model as the protobuf message ModelProto, and its number of pieces."""

    def varint(value):
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes(out + bytes([value]))

    def number(field, value):
        return varint(field << 3) + varint(value)

    def data(field, content):
        return varint(field << 3 | 2) + varint(len(content)) + content

    normal, unknown, control, byte = 1, 2, 3, 6
    pieces = [("<pad>", 0.0, control), ("</s>", 0.0, control), ("<unk>", 0.0, unknown)]
    pieces += [(f"<0x{i:02X}>", 0.0, byte) for i in range(256)]
    # Scores fall with the rank like the logarithm of a word's frequency; single characters come last.
    pieces += [(f"\u2581{word}", -3.0 - math.log(rank + 1), normal) for rank, word in enumerate(WORDS)]
    pieces += [(ending, -6.0, normal) for ending in ("s", "ed", "ing", "er", "ly")]
    single = [c for c in "\u2581abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?'\"()-/&%" if c != "s"]
    pieces += [(c, -10.0, normal) for c in single]

    message = b""
    for text, score, kind in pieces:
        message += data(1, data(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + number(3, kind))
    unigram, byte_fallback, unk_id, bos_id, eos_id, pad_id = 3, 35, 40, 41, 42, 43
    no_id = (1 << 64) - 1  # -1
    message += data(
        2,
        number(unigram, 1)
        + number(byte_fallback, 1)
        + number(unk_id, 2)
        + number(bos_id, no_id)
        + number(eos_id, 1)
        + number(pad_id, 0),
    )
    return message + data(3, data(1, b"identity")), len(pieces)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where the checkpoint goes; files that are there are replaced")
    folder = parser.parse_args().folder

    tokenizer, n_pieces = sentencepiece_model()
    write(folder / "tokenizer" / "spiece.model", tokenizer)
    encoder_config = text_encoder_config(n_pieces)
    write_json(folder / "text_encoder" / "config.json", encoder_config)
    write_safetensors(
        folder / "text_encoder" / "model.safetensors", "text_encoder", text_encoder_shapes(encoder_config), "BF16"
    )
    write_json(folder / "vae" / "config.json", VAE_CONFIG)
    write_safetensors(folder / "vae" / "diffusion_pytorch_model.safetensors", "vae", vae_shapes(), "F32")
    write_json(folder / "transformer" / "config.json", TRANSFORMER_CONFIG)
    write_shards(folder / "transformer", "diffusion_pytorch_model", "transformer", transformer_shapes(), 3)
    write_json(folder / "scheduler" / "scheduler_config.json", SCHEDULER_CONFIG)
    # Last: a folder with this file is complete.
    write_json(folder / "model_index.json", MODEL_INDEX)


if __name__ == "__main__":
    main()
