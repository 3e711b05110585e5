//! A case in a backend's memory, ready to run any number of times.

use std::ffi::c_void;

use snapmla::abi::types::*;

use super::{Case, Image, QueryForm, Questions};
use crate::backend::{Backend, Cache, init};
use crate::device::Stream;
use crate::memory::{Buffer, Result, bytes_of};
use crate::strides::Strides;

/// Bytes behind the workspace that nothing may touch.
const GUARD: usize = 1024;
const GUARD_BYTE: u8 = 0xA7;

/// What a caller sized its workspace and graph for: at least what any call brings.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub batch: usize,
    pub q_len: usize,
    pub heads: usize,
    pub seq_len: usize,
}

impl Room {
    pub fn of(case: &Case) -> Self {
        let table = case.columns() * case.page_size;
        let seq_len = if case.max_seq_len == 0 { table } else { table.min(case.max_seq_len as usize) };
        Room { batch: case.batch().max(1), q_len: case.longest_q_len(), heads: case.heads, seq_len: seq_len.max(1) }
    }
}

/// What a call wrote, and where its rows stand in it.
#[derive(Clone, PartialEq)]
pub struct Answers {
    pub out: Vec<u8>,
    pub out_strides: Strides,
    pub lse: Vec<u8>,
    pub lse_strides: Strides,
}

pub struct Loaded {
    pub cache: Cache,
    pub params: snapmla_decode_params,
    out_strides: Strides,
    lse_strides: Strides,
    pub seq_lens: Buffer,
    pub table: Buffer,
    pub cu_q_lens: Option<Buffer>,
    pub q_content: Buffer,
    pub q_rope: Buffer,
    q_scale: Buffer,
    out: Buffer,
    lse: Buffer,
    workspace: Buffer,
    workspace_size: usize,
}

// SAFETY: buffers and addresses into them; calls on one workspace are the caller's to keep apart.
unsafe impl Sync for Loaded {}

fn load_cache(backend: &Backend, image: &Image) -> Result<Cache> {
    let memory = Buffer::new(&backend.memory, image.geometry.span())?;
    if image.poisoned {
        memory.upload(0, &image.bytes)?;
    } else {
        if !backend.is_cpu() {
            memory.fill(0xFF)?;
        }
        for &page in &image.written {
            memory.upload(image.geometry.page(image.layer, page), image.page_bytes(page))?;
        }
    }
    Cache::over(backend, image.geometry, memory, true)
}

impl Loaded {
    /// With a workspace for just this call.
    pub fn new(backend: &Backend, case: &Case, image: &Image, questions: &Questions) -> Result<Self> {
        Self::with_room(backend, case, image, questions, Room::of(case))
    }

    /// With a workspace for `room`.
    pub fn with_room(
        backend: &Backend,
        case: &Case,
        image: &Image,
        questions: &Questions,
        room: Room,
    ) -> Result<Self> {
        let cache = load_cache(backend, image)?;
        let dims = case.dims();
        let element = case.out.bytes();
        let out_strides = Strides::new(case.out_style, &dims, 512 * element, element);
        let lse_strides = Strides::new(case.lse_style, &dims, 4, 4);
        let cu_q_lens = match dims.q_len {
            Some(_) => None,
            None => Some(backend.buffer(bytes_of(&case.cu_q_lens()))?),
        };
        let mut limits = init!(snapmla_decode_limits);
        if case.batch_invariant {
            limits.flags = SNAPMLA_DECODE_BATCH_INVARIANT;
        }
        limits.max_batch = room.batch as u32;
        limits.max_q_len = room.q_len as u32;
        limits.max_heads = room.heads as u32;
        limits.max_seq_len = room.seq_len as u32;
        let workspace_size = backend.workspace_size(&limits)?;
        let mut loaded = Self {
            cache,
            params: init!(snapmla_decode_params),
            out_strides,
            lse_strides,
            seq_lens: backend.buffer(bytes_of(&case.seq_lens))?,
            table: backend.buffer(bytes_of(&image.table))?,
            cu_q_lens,
            q_content: backend.buffer(&questions.content)?,
            q_rope: backend.buffer(&questions.rope)?,
            q_scale: backend.buffer(&questions.scale)?,
            out: Buffer::new(&backend.memory, out_strides.extent(&dims))?,
            lse: Buffer::new(&backend.memory, lse_strides.extent(&dims))?,
            workspace: Buffer::aligned(&backend.memory, workspace_size + GUARD, 256)?,
            workspace_size,
        };
        loaded.describe(case, image, questions);
        loaded.soil(0xFF)?;
        Ok(loaded)
    }

    fn describe(&mut self, case: &Case, image: &Image, questions: &Questions) {
        let Self { params: p, out_strides, lse_strides, .. } = self;
        p.flags = if case.causal { SNAPMLA_DECODE_CAUSAL } else { 0 };
        if case.batch_invariant {
            p.flags |= SNAPMLA_DECODE_BATCH_INVARIANT;
        }
        p.layer = case.layer as i32;
        p.batch = case.batch() as u32;
        p.q_len = case.longest_q_len() as u32;
        p.num_heads = case.heads as u32;
        p.softmax_scale = case.softmax_scale;
        p.q_dtype = match case.query_form {
            QueryForm::Raw => case.query_element.code(),
            QueryForm::Quantised => SNAPMLA_DTYPE_QUANTISED,
        };
        let at = questions.content_strides;
        p.q_content = self.q_content.at::<c_void>(at.base);
        (p.q_content_batch_stride, p.q_content_token_stride, p.q_content_head_stride) = at.passed();
        let at = questions.rope_strides;
        let ropes = if questions.rope.is_empty() { &self.q_content } else { &self.q_rope };
        p.q_rope = ropes.at::<c_void>(at.base);
        (p.q_rope_batch_stride, p.q_rope_token_stride, p.q_rope_head_stride) = at.passed();
        if case.query_form == QueryForm::Quantised {
            let at = questions.scale_strides;
            p.q_scale = self.q_scale.at::<f32>(at.base);
            (p.q_scale_batch_stride, p.q_scale_token_stride, p.q_scale_head_stride) = at.passed();
        }
        p.cu_q_lens = self.cu_q_lens.as_ref().map_or(std::ptr::null(), |buffer| buffer.at(0));
        p.seq_lens = self.seq_lens.at(0);
        p.block_table = self.table.at(0);
        p.max_pages = image.columns as u32;
        p.max_seq_len = case.max_seq_len;
        p.out_dtype = case.out.code();
        p.out = self.out.at::<c_void>(out_strides.base);
        (p.out_batch_stride, p.out_token_stride, p.out_head_stride) = out_strides.passed();
        if case.want_lse {
            p.lse = self.lse.at::<f32>(lse_strides.base);
            (p.lse_batch_stride, p.lse_token_stride, p.lse_head_stride) = lse_strides.passed();
        }
        p.workspace = if self.workspace_size == 0 { std::ptr::null_mut() } else { self.workspace.at(0) };
        p.workspace_size = self.workspace_size as u64;
    }

    /// Fills outputs with NaN, the workspace with `garbage`, and what follows it with a mark.
    pub fn soil(&self, garbage: u8) -> Result<()> {
        self.out.fill(0xFF)?;
        self.lse.fill(0xFF)?;
        self.workspace.fill_range(0, self.workspace_size, garbage)?;
        self.workspace.fill_range(self.workspace_size, GUARD, GUARD_BYTE)
    }

    /// Queues the call.
    pub fn launch(&self, backend: &Backend, stream: &Stream) -> Result<()> {
        // SAFETY: every pointer is one of this struct's buffers, laid out as the strides say.
        unsafe { backend.decode(&self.cache, &self.params, stream) }
    }

    /// What finished calls have written.
    pub fn answers(&self) -> Result<Answers> {
        let mut guard = [0; GUARD];
        self.workspace.download_into(self.workspace_size, &mut guard)?;
        if let Some(at) = guard.iter().position(|&byte| byte != GUARD_BYTE) {
            return Err(format!("wrote {at} bytes past the workspace's {}", self.workspace_size));
        }
        Ok(Answers {
            out: self.out.download()?,
            out_strides: self.out_strides,
            lse: self.lse.download()?,
            lse_strides: self.lse_strides,
        })
    }

    /// From soiled outputs to answers.
    pub fn run(&self, backend: &Backend) -> Result<Answers> {
        self.run_over(backend, 0xFF)
    }

    pub fn run_over(&self, backend: &Backend, garbage: u8) -> Result<Answers> {
        self.soil(garbage)?;
        self.launch(backend, &backend.stream)?;
        backend.stream.wait()?;
        self.answers()
    }
}
