#!/usr/bin/env python3
"""Writes a small model of the deepseek2 architecture with random weights: tiny_model.py OUT.gguf [--moe]

Two layers of multi-head latent attention (512 latent and 64 positional numbers a token, 16 heads), 26 MB. It says
nothing sensible, and it has every operation that a large one has. Needs gguf and numpy.
"""

import argparse

import gguf
import numpy as np

LAYERS, EMBEDDING, HEADS, VOCABULARY = 2, 256, 16, 128
Q_LORA, KV_LORA, NOPE, ROPE, VALUE = 96, 512, 128, 64, 128
FEED_FORWARD, EXPERT_FEED_FORWARD, EXPERTS, EXPERTS_USED = 256, 64, 4, 2


def metadata(writer: gguf.GGUFWriter, moe: bool) -> None:
    writer.add_name("tiny latent attention")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_block_count(LAYERS)
    writer.add_context_length(4096)
    writer.add_embedding_length(EMBEDDING)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_key_length(KV_LORA + ROPE)
    writer.add_value_length(KV_LORA)
    writer.add_key_length_mla(NOPE + ROPE)
    writer.add_value_length_mla(VALUE)
    writer.add_q_lora_rank(Q_LORA)
    writer.add_kv_lora_rank(KV_LORA)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(ROPE)
    writer.add_rope_freq_base(10000.0)
    writer.add_leading_dense_block_count(1 if moe else LAYERS)
    writer.add_expert_feed_forward_length(EXPERT_FEED_FORWARD)
    writer.add_expert_count(EXPERTS if moe else 0)
    writer.add_expert_used_count(EXPERTS_USED if moe else 0)
    writer.add_expert_shared_count(1)
    writer.add_expert_weights_scale(1.0)
    writer.add_expert_weights_norm(True)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("none")


def attention(block: str) -> dict[str, tuple[int, ...]]:
    """Shapes in ggml's order: the numbers that lie beside each other first."""
    return {
        f"{block}.attn_norm": (EMBEDDING,),
        f"{block}.attn_q_a": (EMBEDDING, Q_LORA),
        f"{block}.attn_q_a_norm": (Q_LORA,),
        f"{block}.attn_q_b": (Q_LORA, HEADS * (NOPE + ROPE)),
        f"{block}.attn_kv_a_mqa": (EMBEDDING, KV_LORA + ROPE),
        f"{block}.attn_kv_a_norm": (KV_LORA,),
        f"{block}.attn_k_b": (NOPE, KV_LORA, HEADS),
        f"{block}.attn_v_b": (KV_LORA, VALUE, HEADS),
        f"{block}.attn_output": (HEADS * VALUE, EMBEDDING),
        f"{block}.ffn_norm": (EMBEDDING,),
    }


def feed_forward(block: str, suffix: str, width: int, experts: tuple[int, ...] = ()) -> dict[str, tuple[int, ...]]:
    return {
        f"{block}.ffn_gate{suffix}": (EMBEDDING, width, *experts),
        f"{block}.ffn_up{suffix}": (EMBEDDING, width, *experts),
        f"{block}.ffn_down{suffix}": (width, EMBEDDING, *experts),
    }


def shapes(moe: bool) -> dict[str, tuple[int, ...]]:
    tensors = {
        "token_embd": (EMBEDDING, VOCABULARY),
        "output_norm": (EMBEDDING,),
        "output": (EMBEDDING, VOCABULARY),
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        tensors |= attention(block)
        if moe and layer > 0:
            tensors[f"{block}.ffn_gate_inp"] = (EMBEDDING, EXPERTS)
            tensors |= feed_forward(block, "_exps", EXPERT_FEED_FORWARD, (EXPERTS,))
            tensors |= feed_forward(block, "_shexp", EXPERT_FEED_FORWARD)
        else:
            tensors |= feed_forward(block, "", FEED_FORWARD)
    return tensors


def weights(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    if name.endswith("_norm"):
        return np.ones(shape, np.float32)
    fan_in = 1 if name == "token_embd" else shape[0]
    return (random.standard_normal(shape[::-1]) / np.sqrt(fan_in)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--moe", action="store_true", help="mixture of experts in the second layer")
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(arguments.out, "deepseek2")
    metadata(writer, arguments.moe)
    for name, shape in shapes(arguments.moe).items():
        writer.add_tensor(f"{name}.weight", weights(name, shape, random))
    if arguments.moe:
        writer.add_tensor("blk.1.exp_probs_b.bias", np.zeros(EXPERTS, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
