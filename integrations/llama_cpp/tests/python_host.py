"""Evaluates tokens with llama-cpp-python over a q8_0 cache: python_host.py MODEL.gguf LOGITS.npy [LOGITS_TO_COMPARE.npy]"""

import sys

import numpy as np
from llama_cpp import GGML_TYPE_Q8_0, Llama, _ggml

# Nats, the mean over tokens; measured at 4e-4 between two kinds of 8-bit cache.
MOST_DIVERGENCE = 4e-3


def log_probabilities(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def main():
    model, to = sys.argv[1:3]
    # llama_backend_init looks at GGML_BACKEND_PATH only where no backend is linked in.
    _ggml.libggml.ggml_backend_load_all()
    llama = Llama(
        model,
        n_ctx=512,
        n_threads=2,
        n_gpu_layers=-1,
        flash_attn=True,
        type_k=GGML_TYPE_Q8_0,
        type_v=GGML_TYPE_Q8_0,
        logits_all=True,
    )
    tokens = [i * 37 % llama.n_vocab() for i in range(200)]
    llama.eval(tokens)
    logits = llama.scores[: len(tokens)].astype(np.float64)
    np.save(to, logits)
    if len(sys.argv) < 4:
        return
    ours, theirs = log_probabilities(logits), log_probabilities(np.load(sys.argv[3]))
    divergence = (np.exp(theirs) * (theirs - ours)).sum(axis=1).mean()
    print(f"{len(tokens)} tokens, KL divergence from the stock q8_0 cache {divergence:.1e}")
    # None at all would mean that both runs computed the same way.
    if not 0 < divergence < MOST_DIVERGENCE:
        sys.exit(f"expected more than 0 and less than {MOST_DIVERGENCE}")


main()
