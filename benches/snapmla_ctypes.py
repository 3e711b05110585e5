"""include/snapmla.h for Python: the structs that compare.py needs, and the library behind them.

Nothing here knows of PyTorch: pointers and streams are plain integers.
"""

import ctypes as c

STATUS_OK = 0
BACKEND_AUTO, BACKEND_CPU, BACKEND_CUDA = 0, 1, 2
DTYPE_BF16, DTYPE_F16, DTYPE_F32, DTYPE_QUANTISED = 1, 2, 3, 4
DECODE_CAUSAL = 1
DECODE_BATCH_INVARIANT = 2
RECORD_BYTES = 644

u32, i32, i64, u64, f32, ptr = c.c_uint32, c.c_int32, c.c_int64, c.c_uint64, c.c_float, c.c_void_p


class Params(c.Structure):
    """A params struct: all zero but for its size and what is given, as the header's initialisers make it."""

    def __init__(self, **fields):
        super().__init__(struct_size=c.sizeof(self), **fields)


def struct(name, *fields):
    return type(name, (Params,), {"_fields_": [("struct_size", u32), *fields]})


def strides(tensor, *axes):
    return [(tensor, ptr), *((f"{tensor}_{axis}_stride", i64) for axis in axes)]


ContextParams = struct(
    "ContextParams", ("flags", u32), ("backend", u32), ("device_ordinal", i32), ("cpu_threads", u32)
)
ContextInfo = struct(
    "ContextInfo", ("backend", u32), ("device_ordinal", i32), ("parallelism", u32), ("name", c.c_char * 128)
)
CacheParams = struct(
    "CacheParams",
    ("flags", u32),
    ("page_size", u32),
    ("num_layers", u32),
    ("num_pages", i64),
    ("page_stride", i64),
    ("layer_stride", i64),
    ("memory", ptr),
    ("memory_size", u64),
)
KAppendParams = struct(
    "KAppendParams",
    ("flags", u32),
    ("layer", i32),
    ("dtype", u32),
    ("num_tokens", i64),
    ("content", ptr),
    ("content_stride", i64),
    ("rope", ptr),
    ("rope_stride", i64),
    ("slots", ptr),
)
DecodeLimits = struct(
    "DecodeLimits", ("flags", u32), ("max_batch", u32), ("max_q_len", u32), ("max_heads", u32), ("max_seq_len", u32)
)
DecodeParams = struct(
    "DecodeParams",
    ("flags", u32),
    ("layer", i32),
    ("batch", u32),
    ("q_len", u32),
    ("num_heads", u32),
    ("softmax_scale", f32),
    ("q_dtype", u32),
    *strides("q_content", "batch", "token", "head"),
    *strides("q_rope", "batch", "token", "head"),
    *strides("q_scale", "batch", "token", "head"),
    ("cu_q_lens", ptr),
    ("seq_lens", ptr),
    ("block_table", ptr),
    ("block_table_stride", i64),
    ("max_pages", u32),
    ("max_seq_len", u32),
    ("out_dtype", u32),
    ("reserved", u32),
    *strides("out", "batch", "token", "head"),
    *strides("lse", "batch", "token", "head"),
    ("workspace", ptr),
    ("workspace_size", u64),
    ("slots", ptr),
    ("slots_stride", i64),
    ("max_slots", u32),
    ("reserved_slots", u32),
)


class SnapmlaError(RuntimeError):
    """A status other than OK, with the library's message."""


class Library:
    """libsnapmla.so; every call raises SnapmlaError when the library refuses."""

    def __init__(self, path):
        self._lib = c.CDLL(str(path))
        for name in ("snapmla_version", "snapmla_last_error_message"):
            getattr(self._lib, name).restype = c.c_char_p

    def _call(self, name, *arguments):
        if getattr(self._lib, name)(*arguments) != STATUS_OK:
            raise SnapmlaError(f"{name}: {self._lib.snapmla_last_error_message().decode()}")

    def version(self):
        return self._lib.snapmla_version().decode()

    def context(self, backend=BACKEND_AUTO, device=0, threads=0):
        handle = ptr()
        params = ContextParams(backend=backend, device_ordinal=device, cpu_threads=threads)
        self._call("snapmla_context_create", c.byref(params), c.byref(handle))
        return handle

    def describe(self, context):
        info = ContextInfo()
        self._call("snapmla_context_describe", context, c.byref(info))
        return info

    def cache_size(self, params):
        size = u64()
        self._call("snapmla_cache_size", c.byref(params), c.byref(size))
        return size.value

    def cache(self, context, params, stream):
        handle = ptr()
        self._call("snapmla_cache_init", context, c.byref(params), ptr(stream), c.byref(handle))
        return handle

    def workspace_size(self, context, limits):
        size = u64()
        self._call("snapmla_decode_workspace_size", context, c.byref(limits), c.byref(size))
        return size.value

    def k_append(self, context, cache, params, stream):
        self._call("snapmla_k_append", context, cache, c.byref(params), ptr(stream))

    def decode(self, context, cache, params, stream):
        self._call("snapmla_decode", context, cache, c.byref(params), ptr(stream))

    def destroy(self, context, cache):
        self._call("snapmla_cache_destroy", cache)
        self._call("snapmla_context_destroy", context)
