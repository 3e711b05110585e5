//! A thin safe wrapper of the C functions: the program uses the library only as a C caller would.
//!
//! Lengths of the buffers are checked here. What device buffers hold (page ids, slots, sequence lengths) is the
//! calling code's word, as it is a C caller's.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::rc::Rc;

use snapmla::abi::cache::{snapmla_cache, snapmla_cache_destroy, snapmla_cache_init, snapmla_cache_size};
use snapmla::abi::context::*;
use snapmla::abi::decode::{snapmla_decode, snapmla_decode_workspace_size};
use snapmla::abi::fetch::snapmla_fetch_dequant;
use snapmla::abi::k_append::snapmla_k_append;
use snapmla::abi::q_quant::snapmla_q_quant;
use snapmla::abi::records_copy::snapmla_records_copy;
use snapmla::abi::types::*;
use snapmla::abi::version::{snapmla_abi_version, snapmla_last_error_message, snapmla_version};

use crate::failure::{Failure, Result};
use crate::layer::{CONTENT, ROPE};
use crate::memory::{Buffer, Floats, Place, Slice};

/// A params struct of the ABI, all zero but for its size: what the header's initialiser macros make.
macro_rules! params {
    ($name:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        // SAFETY: the ABI's structs are integers, floats and pointers, for which zero bytes are a value.
        let mut params: $name = unsafe { std::mem::zeroed() };
        params.struct_size = size_of::<$name>() as u32;
        $(params.$field = $value;)*
        params
    }};
}

fn check(status: snapmla_status) -> Result<()> {
    if status == SNAPMLA_STATUS_OK {
        return Ok(());
    }
    Err(Failure::new(last_error()))
}

fn last_error() -> String {
    // SAFETY: this thread's message, copied before any other call.
    unsafe { CStr::from_ptr(snapmla_last_error_message()) }.to_string_lossy().into_owned()
}

pub fn version() -> String {
    // SAFETY: a static string.
    unsafe { CStr::from_ptr(snapmla_version()) }.to_string_lossy().into_owned()
}

pub fn abi_version() -> u32 {
    snapmla_abi_version()
}

/// Why the backend cannot be used; None when it can.
pub fn backend_missing(backend: snapmla_backend, device: i32) -> Option<String> {
    (snapmla_backend_available(backend, device) != SNAPMLA_STATUS_OK).then(last_error)
}

pub struct Options {
    pub backend: snapmla_backend,
    pub device: i32,
    pub threads: u32,
}

pub struct Info {
    pub backend: snapmla_backend,
    pub device: i32,
    pub parallelism: u32,
    pub name: String,
}

pub struct Context {
    handle: *mut snapmla_context,
}

impl Context {
    pub fn create(options: &Options) -> Result<Rc<Self>> {
        let params = params!(snapmla_context_params {
            backend: options.backend,
            device_ordinal: options.device,
            cpu_threads: options.threads,
        });
        let mut handle = null_mut();
        // SAFETY: a complete struct and a place for the handle.
        check(unsafe { snapmla_context_create(&params, &mut handle) })?;
        Ok(Rc::new(Self { handle }))
    }

    pub fn describe(&self) -> Result<Info> {
        let mut info = params!(snapmla_context_info {});
        // SAFETY: a live handle and a complete struct.
        check(unsafe { snapmla_context_describe(self.handle, &mut info) })?;
        // SAFETY: the library ends the name with a NUL inside the array.
        let name = unsafe { CStr::from_ptr(info.name.as_ptr()) }.to_string_lossy().into_owned();
        Ok(Info { backend: info.backend, device: info.device_ordinal, parallelism: info.parallelism, name })
    }

    pub fn workspace_size(&self, limits: &DecodeLimits) -> Result<u64> {
        let limits = params!(snapmla_decode_limits {
            flags: batch_invariant(limits.batch_invariant),
            max_batch: limits.batch as u32,
            max_q_len: limits.q_len as u32,
            max_heads: limits.heads as u32,
            max_seq_len: limits.seq_len as u32,
        });
        let mut size = 0;
        // SAFETY: a live handle, a complete struct and a place for the size.
        check(unsafe { snapmla_decode_workspace_size(self.handle, &limits, &mut size) })?;
        Ok(size)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once, and every cache holds the context alive.
        unsafe { snapmla_context_destroy(self.handle) };
    }
}

/// Quantised queries, [tokens][heads].
pub struct QuantisedQueries {
    pub content: Buffer<u8>,
    pub rope: Buffer<half::bf16>,
    pub scale: Buffer<f32>,
}

#[derive(Clone, Copy)]
pub enum Queries<'a> {
    Raw { content: Floats<'a>, rope: Floats<'a> },
    Quantised(&'a QuantisedQueries),
}

/// The largest call that a workspace is made for.
pub struct DecodeLimits {
    pub batch_invariant: bool,
    pub batch: usize,
    pub q_len: usize,
    pub heads: usize,
    pub seq_len: usize,
}

/// One decode call; everything is packed.
pub struct Decode<'a> {
    pub causal: bool,
    pub batch_invariant: bool,
    pub batch: usize,
    pub q_len: usize,
    pub heads: usize,
    pub softmax_scale: f32,
    pub queries: Queries<'a>,
    /// [batch]
    pub seq_lens: Slice<'a, i32>,
    /// [batch][max_pages]
    pub block_table: Slice<'a, i32>,
    pub max_pages: usize,
    /// 0: as many as the block table has room for.
    pub max_seq_len: usize,
    /// [batch][q_len][heads][512]
    pub out: Floats<'a>,
    /// [batch][q_len][heads]
    pub lse: Slice<'a, f32>,
    pub workspace: &'a Buffer<u8>,
}

/// One layer of a paged cache.
pub struct Cache {
    shared: Rc<AllLayers>,
    layer: i32,
    pub page_size: usize,
    /// Of the layer.
    pub pages: usize,
}

/// The cache's handle, and the memory it lives in.
struct AllLayers {
    context: Rc<Context>,
    place: Place,
    handle: *mut snapmla_cache,
    /// Freed after the handle.
    _memory: Buffer<u8>,
}

impl Cache {
    /// The only layer of a cache.
    pub fn create(context: &Rc<Context>, place: &Place, page_size: usize, pages: usize) -> Result<Self> {
        let mut layers = Self::create_layers(context, place, 1, page_size, pages)?;
        Ok(layers.remove(0))
    }

    /// Every layer of a cache with `pages` pages in each.
    pub fn create_layers(
        context: &Rc<Context>,
        place: &Place,
        layers: usize,
        page_size: usize,
        pages: usize,
    ) -> Result<Vec<Self>> {
        let mut params = params!(snapmla_cache_params {
            page_size: page_size as u32,
            num_layers: layers as u32,
            num_pages: pages as i64,
        });
        let mut size = 0;
        // SAFETY: a complete struct and a place for the size.
        check(unsafe { snapmla_cache_size(&params, &mut size) })?;
        let memory = place.buffer::<u8>(size as usize)?;
        params.memory = memory.pointer().cast();
        params.memory_size = size;
        let mut handle = null_mut();
        // SAFETY: the memory is as large as the library asked, and lives in the cache made here.
        check(unsafe { snapmla_cache_init(context.handle, &params, place.stream(), &mut handle) })?;
        let shared = AllLayers { context: context.clone(), place: place.clone(), handle, _memory: memory };
        let shared = Rc::new(shared);
        Ok((0..layers as i32).map(|layer| Self { shared: shared.clone(), layer, page_size, pages }).collect())
    }

    /// Quantises tokens [n][512] and [n][64] into `slots` [n].
    pub fn append(&self, content: Floats, rope: Floats, slots: Slice<i64>) -> Result<()> {
        expect("content", content.len, slots.len * CONTENT)?;
        expect("rope", rope.len, slots.len * ROPE)?;
        let params = params!(snapmla_k_append_params {
            layer: self.layer,
            dtype: content.dtype,
            num_tokens: slots.len as i64,
            content: content.pointer,
            rope: rope.pointer,
            slots: slots.pointer(),
        });
        let shared = &self.shared;
        // SAFETY: live handles; the buffers have the lengths that the params say.
        check(unsafe { snapmla_k_append(shared.context.handle, shared.handle, &params, shared.place.stream()) })
    }

    pub fn decode(&self, call: &Decode) -> Result<()> {
        let rows = call.batch * call.q_len * call.heads;
        expect("seq_lens", call.seq_lens.len, call.batch)?;
        expect("block_table", call.block_table.len, call.batch * call.max_pages)?;
        expect("out", call.out.len, rows * CONTENT)?;
        expect("lse", call.lse.len, rows)?;
        let mut params = params!(snapmla_decode_params {
            layer: self.layer,
            flags: if call.causal { SNAPMLA_DECODE_CAUSAL } else { 0 } | batch_invariant(call.batch_invariant),
            batch: call.batch as u32,
            q_len: call.q_len as u32,
            num_heads: call.heads as u32,
            softmax_scale: call.softmax_scale,
            seq_lens: call.seq_lens.pointer(),
            block_table: call.block_table.pointer(),
            max_pages: call.max_pages as u32,
            max_seq_len: call.max_seq_len as u32,
            out_dtype: call.out.dtype,
            out: call.out.pointer,
            lse: call.lse.pointer(),
            workspace: if call.workspace.len() == 0 { null_mut() } else { call.workspace.pointer().cast() },
            workspace_size: call.workspace.len() as u64,
        });
        match call.queries {
            Queries::Raw { content, rope } => {
                expect("q_content", content.len, rows * CONTENT)?;
                expect("q_rope", rope.len, rows * ROPE)?;
                (params.q_dtype, params.q_content, params.q_rope) = (content.dtype, content.pointer, rope.pointer);
            }
            Queries::Quantised(queries) => {
                expect("q_scale", queries.scale.len(), rows)?;
                params.q_dtype = SNAPMLA_DTYPE_QUANTISED;
                params.q_content = queries.content.pointer().cast();
                params.q_rope = queries.rope.pointer().cast();
                params.q_scale = queries.scale.pointer();
            }
        }
        let shared = &self.shared;
        // SAFETY: live handles; the buffers have the lengths that the params say.
        check(unsafe { snapmla_decode(shared.context.handle, shared.handle, &params, shared.place.stream()) })
    }

    /// Reads the records at `slots` [n] back into [n][512] and [n][64].
    pub fn fetch_slots(&self, slots: Slice<i64>, content: Floats, rope: Floats) -> Result<()> {
        expect("content", content.len, slots.len * CONTENT)?;
        expect("rope", rope.len, slots.len * ROPE)?;
        let params = params!(snapmla_fetch_params { num_tokens: slots.len as i64, slots: slots.pointer() });
        self.fetch(params, content, rope)
    }

    /// Reads the first `tokens` of the sequence whose page ids are `pages` into [tokens][512] and [tokens][64].
    pub fn fetch_prefix(&self, pages: Slice<i32>, tokens: usize, content: Floats, rope: Floats) -> Result<()> {
        expect("content", content.len, tokens * CONTENT)?;
        expect("rope", rope.len, tokens * ROPE)?;
        let cu_tokens = self.shared.place.upload(&[0, tokens as i32])?;
        let params = params!(snapmla_fetch_params {
            num_tokens: tokens as i64,
            block_table: pages.pointer(),
            max_pages: pages.len as u32,
            batch: 1,
            cu_tokens: cu_tokens.pointer(),
        });
        self.fetch(params, content, rope)
    }

    fn fetch(&self, mut params: snapmla_fetch_params, content: Floats, rope: Floats) -> Result<()> {
        params.layer = self.layer;
        params.dtype = content.dtype;
        params.content = content.pointer;
        params.rope = rope.pointer;
        let shared = &self.shared;
        // SAFETY: live handles; the callers checked the buffers.
        check(unsafe { snapmla_fetch_dequant(shared.context.handle, shared.handle, &params, shared.place.stream()) })
    }

    pub fn copy_records(&self, from: Slice<i64>, to: Slice<i64>) -> Result<()> {
        expect("dst_slots", to.len, from.len)?;
        let params = params!(snapmla_records_copy_params {
            layer: self.layer,
            num_records: from.len as i64,
            src_slots: from.pointer(),
            dst_slots: to.pointer(),
        });
        let shared = &self.shared;
        // SAFETY: live handles; the buffers have the lengths that the params say.
        check(unsafe { snapmla_records_copy(shared.context.handle, shared.handle, &params, shared.place.stream()) })
    }
}

impl Drop for AllLayers {
    fn drop(&mut self) {
        let _ = self.place.synchronize();
        // SAFETY: the handle is destroyed once; the memory is freed after it.
        unsafe { snapmla_cache_destroy(self.handle) };
    }
}

impl QuantisedQueries {
    pub fn new(place: &Place, rows: usize) -> Result<Self> {
        Ok(Self {
            content: place.buffer(rows * CONTENT)?,
            rope: place.buffer(rows * ROPE)?,
            scale: place.buffer(rows)?,
        })
    }

    /// Fills this from raw queries [tokens][heads].
    pub fn quantise(
        &self,
        context: &Context,
        place: &Place,
        heads: usize,
        content: Floats,
        rope: Floats,
    ) -> Result<()> {
        let rows = self.scale.len();
        expect("content", content.len, rows * CONTENT)?;
        expect("rope", rope.len, rows * ROPE)?;
        let params = params!(snapmla_q_quant_params {
            dtype: content.dtype,
            num_heads: heads as u32,
            num_tokens: (rows / heads) as i64,
            content: content.pointer,
            rope: rope.pointer,
            q_content: self.content.pointer().cast(),
            q_rope: self.rope.pointer().cast(),
            q_scale: self.scale.pointer(),
        });
        // SAFETY: a live handle; the buffers have the lengths that the params say.
        check(unsafe { snapmla_q_quant(context.handle, &params, place.stream()) })
    }
}

fn batch_invariant(wanted: bool) -> u32 {
    if wanted { SNAPMLA_DECODE_BATCH_INVARIANT } else { 0 }
}

fn expect(name: &str, is: usize, wanted: usize) -> Result<()> {
    if is == wanted { Ok(()) } else { Err(Failure::new(format!("{name} has {is} elements, {wanted} are needed"))) }
}
