//! Decode: FP8 attention over the cache.

use super::strides::{self, Dim, Row};
use super::{BatchRows, CacheView, DecodeLimits, Dtype, Rows, checks};
use crate::abi::types::*;
use crate::error::{Error, Result};
use crate::layout::{CONTENT_DIM, ROPE_DIM};

/// All that `flags` may have.
pub const FLAGS: u32 = SNAPMLA_DECODE_CAUSAL | SNAPMLA_DECODE_BATCH_INVARIANT;

/// Alignment of the workspace.
const WORKSPACE_ALIGN: i64 = 256;

/// How the queries come.
#[derive(Debug, Clone, Copy)]
pub enum Queries {
    /// Raw, quantised by the decode itself.
    Raw(Dtype),
    /// As `q_quant` wrote them, with their scales.
    Quantised(BatchRows<*const f32>),
}

#[derive(Debug, Clone, Copy)]
pub struct DecodeRequest {
    pub cache: CacheView,
    pub layer: usize,
    pub causal: bool,
    pub batch_invariant: bool,
    pub batch: u32,
    /// Query tokens of a sequence; with `cu_q_lens`, the most that one has.
    pub q_len: u32,
    pub num_heads: u32,
    pub softmax_scale: f32,
    pub queries: Queries,
    pub q_content: BatchRows<*const u8>,
    pub q_rope: BatchRows<*const u8>,
    /// NULL for a uniform batch.
    pub cu_q_lens: *const i32,
    pub seq_lens: *const i32,
    /// Not looked at when there are `slots`.
    pub block_table: Rows<*const i32>,
    pub max_pages: u32,
    /// `ptr` is NULL for `block_table`.
    pub slots: Rows<*const i64>,
    /// Sequences are cut here: `min(max_seq_len, max_pages * page_size)` or `min(max_seq_len, max_slots)`, never 0
    /// in the first operand.
    pub max_seq_len: u32,
    pub out_dtype: Dtype,
    pub out: BatchRows<*mut u8>,
    /// `ptr` may be NULL.
    pub lse: BatchRows<*mut f32>,
    pub workspace: *mut u8,
    pub workspace_size: u64,
}

impl DecodeRequest {
    /// The limits of this one call.
    pub fn limits(&self) -> DecodeLimits {
        DecodeLimits {
            max_batch: self.batch,
            max_q_len: self.q_len,
            max_heads: self.num_heads,
            max_seq_len: self.max_seq_len.max(1),
            batch_invariant: self.batch_invariant,
        }
    }

    /// `workspace_size` is the backend's answer to `snapmla_decode_workspace_size`.
    pub fn from_params(
        params: &snapmla_decode_params,
        cache: CacheView,
        workspace_size: impl FnOnce(&DecodeLimits) -> u64,
    ) -> Result<Self> {
        checks::flags("flags", params.flags, FLAGS)?;
        checks::reserved("reserved", params.reserved)?;
        let layer = checks::layer(params.layer, cache.num_layers)?;
        checks::at_least_one("q_len", params.q_len)?;
        checks::heads("num_heads", params.num_heads)?;
        if !params.softmax_scale.is_finite() {
            return Err(Error::invalid(format!("softmax_scale {} is not finite", params.softmax_scale)));
        }
        let out_dtype = checks::dtype("out_dtype", params.out_dtype)?;
        let shape = Shape::from_params(params)?;
        let queries = queries(params, &shape)?;
        let (content, rope) = query_rows(&queries);
        let q_content = [params.q_content_head_stride, params.q_content_token_stride, params.q_content_batch_stride];
        let q_rope = [params.q_rope_head_stride, params.q_rope_token_stride, params.q_rope_batch_stride];
        let out = [params.out_head_stride, params.out_token_stride, params.out_batch_stride];
        let lse = [params.lse_head_stride, params.lse_token_stride, params.lse_batch_stride];
        shape.array("q_content", params.q_content, content.unit)?;
        shape.array("q_rope", params.q_rope, rope.unit)?;
        shape.array("out", params.out, out_dtype.bytes() as i64)?;
        checks::optional("lse", params.lse, 4)?;
        checks::optional("cu_q_lens", params.cu_q_lens, 4)?;
        shape.array("seq_lens", params.seq_lens, 4)?;
        let max_seq_len = max_seq_len(params, cache.page_size);
        let batch_invariant = params.flags & SNAPMLA_DECODE_BATCH_INVARIANT != 0;
        let limits = DecodeLimits {
            max_batch: params.batch,
            max_q_len: params.q_len,
            max_heads: params.num_heads,
            max_seq_len: max_seq_len.max(1),
            batch_invariant,
        };
        check_workspace(params, if params.batch == 0 { 0 } else { workspace_size(&limits) })?;
        Ok(Self {
            cache,
            layer,
            causal: params.flags & SNAPMLA_DECODE_CAUSAL != 0,
            batch_invariant,
            batch: params.batch,
            q_len: params.q_len,
            num_heads: params.num_heads,
            softmax_scale: params.softmax_scale,
            queries,
            q_content: shape.rows(params.q_content.cast(), content, Q_CONTENT_STRIDES, q_content)?,
            q_rope: shape.rows(params.q_rope.cast(), rope, Q_ROPE_STRIDES, q_rope)?,
            cu_q_lens: params.cu_q_lens,
            seq_lens: params.seq_lens,
            slots: slots(params)?,
            block_table: block_table(params)?,
            max_pages: params.max_pages,
            max_seq_len,
            out_dtype,
            out: shape.rows(params.out.cast(), Row::of(CONTENT_DIM, out_dtype), OUT_STRIDES, out)?,
            lse: shape.rows(params.lse, Row::F32, LSE_STRIDES, lse)?,
            workspace: params.workspace.cast(),
            workspace_size: params.workspace_size,
        })
    }
}

/// Names of a tensor's strides, from the innermost dimension out.
type StrideNames = [&'static str; 3];

const Q_CONTENT_STRIDES: StrideNames = ["q_content_head_stride", "q_content_token_stride", "q_content_batch_stride"];
const Q_ROPE_STRIDES: StrideNames = ["q_rope_head_stride", "q_rope_token_stride", "q_rope_batch_stride"];
const Q_SCALE_STRIDES: StrideNames = ["q_scale_head_stride", "q_scale_token_stride", "q_scale_batch_stride"];
const OUT_STRIDES: StrideNames = ["out_head_stride", "out_token_stride", "out_batch_stride"];
const LSE_STRIDES: StrideNames = ["lse_head_stride", "lse_token_stride", "lse_batch_stride"];

/// How many rows each of the call's tensors has.
struct Shape {
    batch: i64,
    q_len: i64,
    heads: i64,
    /// Most query tokens of the whole batch.
    tokens: i64,
    ragged: bool,
}

impl Shape {
    fn from_params(params: &snapmla_decode_params) -> Result<Self> {
        Ok(Self {
            batch: i64::from(params.batch),
            q_len: i64::from(params.q_len),
            heads: i64::from(params.num_heads),
            tokens: checks::tokens(("batch", params.batch), ("q_len", params.q_len))?,
            ragged: !params.cu_q_lens.is_null(),
        })
    }

    fn array<T>(&self, name: &str, ptr: *const T, align: i64) -> Result<()> {
        checks::array(name, ptr, align, ("batch", self.batch))
    }

    fn rows<P>(&self, ptr: P, row: Row, names: StrideNames, [head, token, batch]: [i64; 3]) -> Result<BatchRows<P>> {
        let head = Dim::new(names[0], head, self.heads);
        let [head_stride, token_stride, batch_stride] = if self.ragged {
            let [head, token] = strides::resolve(row, [head, Dim::bounded(names[1], token, self.tokens)])?;
            // Nothing strides over sequences; 0 so that a use of it would show.
            [head, token, 0]
        } else {
            let token = Dim::new(names[1], token, if self.batch == 0 { 0 } else { self.q_len });
            strides::resolve(row, [head, token, Dim::new(names[2], batch, self.batch)])?
        };
        Ok(BatchRows { ptr, batch_stride, token_stride, head_stride })
    }
}

fn queries(params: &snapmla_decode_params, shape: &Shape) -> Result<Queries> {
    if params.q_dtype == SNAPMLA_DTYPE_QUANTISED {
        shape.array("q_scale", params.q_scale, 4)?;
        let strides = [params.q_scale_head_stride, params.q_scale_token_stride, params.q_scale_batch_stride];
        return Ok(Queries::Quantised(shape.rows(params.q_scale, Row::F32, Q_SCALE_STRIDES, strides)?));
    }
    let dtype = checks::dtype("q_dtype", params.q_dtype)
        .map_err(|error| Error::invalid(format!("{}, nor {SNAPMLA_DTYPE_QUANTISED} (QUANTISED)", error.message)))?;
    if !params.q_scale.is_null() {
        return Err(Error::invalid(format!(
            "q_scale {:p} is not NULL, but q_dtype {} is not {SNAPMLA_DTYPE_QUANTISED} (QUANTISED): raw queries have no scales",
            params.q_scale, params.q_dtype
        )));
    }
    Ok(Queries::Raw(dtype))
}

/// Content and rope. What `q_quant` writes is 16-byte aligned, and so is every row of it.
fn query_rows(queries: &Queries) -> (Row, Row) {
    match *queries {
        Queries::Raw(dtype) => (Row::of(CONTENT_DIM, dtype), Row::of(ROPE_DIM, dtype)),
        Queries::Quantised(_) => (
            Row { bytes: CONTENT_DIM as i64, unit: checks::CHUNK },
            Row { bytes: 2 * ROPE_DIM as i64, unit: checks::CHUNK },
        ),
    }
}

fn block_table(params: &snapmla_decode_params) -> Result<Rows<*const i32>> {
    let batch = if params.max_pages == 0 { 0 } else { i64::from(params.batch) };
    super::block_table(params.block_table, params.block_table_stride, batch, params.max_pages)
}

fn slots(params: &snapmla_decode_params) -> Result<Rows<*const i64>> {
    let (columns, stride) = (params.max_slots, params.slots_stride);
    checks::reserved("reserved_slots", params.reserved_slots)?;
    checks::optional("slots", params.slots, 8)?;
    if params.slots.is_null() {
        if columns != 0 {
            return Err(Error::invalid(format!("slots is NULL, but max_slots is {columns}")));
        }
        return Ok(Rows { ptr: params.slots, stride: 0 });
    }
    if !params.block_table.is_null() || params.max_pages != 0 {
        return Err(Error::invalid(format!(
            "block_table is {:p} and max_pages {}, but slots is {:p}: one of the two says where the tokens lie",
            params.block_table, params.max_pages, params.slots
        )));
    }
    let row = Row { bytes: 8 * i64::from(columns), unit: 8 };
    let [stride] = strides::resolve(row, [Dim::new("slots_stride", stride, i64::from(params.batch))])?;
    Ok(Rows { ptr: params.slots, stride })
}

fn max_seq_len(params: &snapmla_decode_params, page_size: usize) -> u32 {
    let listed = match params.slots.is_null() {
        true => u64::from(params.max_pages) * page_size as u64,
        false => u64::from(params.max_slots),
    };
    let bound = if params.max_seq_len == 0 { u32::MAX } else { params.max_seq_len };
    listed.min(u64::from(bound)).min(u64::from(checks::MAX_TOKENS)) as u32
}

fn check_workspace(params: &snapmla_decode_params, needed: u64) -> Result<()> {
    checks::optional("workspace", params.workspace, WORKSPACE_ALIGN)?;
    if params.workspace_size < needed {
        return Err(Error::new(
            SNAPMLA_STATUS_WORKSPACE_TOO_SMALL,
            format!("workspace_size {} is less than {needed}, what this call needs", params.workspace_size),
        ));
    }
    if needed > 0 && params.workspace.is_null() {
        return Err(Error::invalid(format!("workspace is NULL, but this call needs {needed} bytes")));
    }
    Ok(())
}
