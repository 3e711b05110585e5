//! Decode steps of a whole model: the appends and decodes of all its layers are one graph, captured once and replayed
//! while the batch changes under it. Sequences grow, swap rows, end, and new ones take their place; the graph sees
//! nothing of that but new numbers in the same buffers. After every step some answers are held against attention in f64.

use half::bf16;
use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::Serialize;

use super::clock::{Method, Timing};
use crate::api::{Cache, Decode, DecodeLimits};
use crate::cuda::Graph;
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::layer::{CONTENT, Layer, ROPE, Rows, SOFTMAX_SCALE};
use crate::memory::{Buffer, Element, Place};
use crate::queries::QuerySet;
use crate::rng::Rng;
use crate::verify::{Bounds, Distance, Measured, check_prefix};

/// DeepSeek-V3's.
pub const LAYERS: usize = 61;
pub const HEADS: [usize; 2] = [16, 128];
pub const STEPS: usize = 8;
const SEED: u64 = 1;
/// Tokens that all sequences of all layers are cut from.
const TEXT: usize = 16_384;
/// Layers looked at after a step, one sequence of each, and rows of that.
const LOOKS: usize = 3;
const ROWS: usize = 4;

/// What a step works on at most.
#[derive(Clone, Copy)]
pub struct Size {
    pub batch: usize,
    /// Tokens of the longest sequence before the first step.
    pub tokens: usize,
}

pub const GPU: Size = Size { batch: 128, tokens: 1024 };
pub const CPU: Size = Size { batch: 4, tokens: 128 };

/// How its calls are made.
#[derive(Clone, Copy)]
pub struct Call {
    pub heads: usize,
    pub page_size: usize,
    pub batch_invariant: bool,
}

#[derive(Serialize)]
pub struct Line {
    pub layers: usize,
    pub batch: usize,
    pub tokens: usize,
    pub heads: usize,
    /// Append and decode of one layer; then each alone.
    pub layer: Timing,
    pub append: Timing,
    pub decode: Timing,
    pub steps: usize,
    pub rows_checked: usize,
    pub error: Measured,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

pub fn measure(engine: &Engine, warm: f64, size: Size, call: Call, bar: &ProgressBar) -> Result<Line> {
    let heads = call.heads;
    bar.set_message(format!("prompts of {LAYERS} layers, {heads} heads"));
    let mut model = Model::new(engine, size, call)?;
    bar.inc(1);
    // What is done on first use must not be in the graph.
    model.step_of(0)?;
    let graph = match &engine.place {
        Place::Gpu(gpu) => Some(gpu.capture(|| model.step())?),
        Place::Host => None,
    };
    let mut checked = Checked::default();
    for step in 0..STEPS {
        bar.set_message(format!("step {}", step + 1));
        if step > 0 {
            model.change_batch()?;
        }
        model.grow()?;
        run(&model, graph.as_ref())?;
        model.check(&mut checked)?;
        bar.inc(1);
    }
    bar.set_message("the clock");
    let method = Method { warm, calls: LAYERS };
    let place = &engine.place;
    let layer = method.measure(place, |layer| model.step_of(layer))?;
    let append = method.measure(place, |layer| model.append(layer))?;
    let decode = method.measure(place, |layer| model.decode(layer))?;
    bar.inc(1);

    let error = checked.distance.measured();
    let bounds = Bounds::of(engine);
    Ok(Line {
        layers: LAYERS,
        batch: size.batch,
        tokens: size.tokens,
        heads,
        layer,
        append,
        decode,
        steps: STEPS,
        rows_checked: checked.rows,
        error,
        broken: bounds.decode_broken(&error),
    })
}

fn run(model: &Model, graph: Option<&Graph>) -> Result<()> {
    match graph {
        Some(graph) => graph.launch(),
        None => model.step(),
    }
}

#[derive(Default)]
struct Checked {
    rows: usize,
    distance: Distance,
}

struct Sequence {
    /// Of the text, in layer 0; see `first_in`.
    first: usize,
    len: usize,
    pages: Vec<i32>,
}

/// The buffers that the graph's calls read and write, and what the host knows of the batch in them.
struct Model<'e> {
    engine: &'e Engine,
    size: Size,
    call: Call,
    rng: Rng,
    layers: Vec<Cache>,
    text: Text,
    queries: QuerySet,
    /// A row of the batch each; None: no sequence.
    rows: Vec<Option<Sequence>>,
    free_pages: Vec<i32>,
    max_pages: usize,
    // [batch]
    seq_lens: Buffer<i32>,
    slots: Buffer<i64>,
    // [batch][max_pages]
    block_table: Buffer<i32>,
    // [layers][batch]
    content: Buffer<bf16>,
    rope: Buffer<bf16>,
    // [layers][batch][heads]
    out: Buffer<bf16>,
    lse: Buffer<f32>,
    workspace: Buffer<u8>,
}

/// The same numbers on the host and in the backend's memory.
struct Text {
    content: Vec<bf16>,
    rope: Vec<bf16>,
    content_there: Buffer<bf16>,
    rope_there: Buffer<bf16>,
}

impl<'e> Model<'e> {
    fn new(engine: &'e Engine, size: Size, call: Call) -> Result<Self> {
        let (heads, page_size) = (call.heads, call.page_size);
        let place = &engine.place;
        let batch = size.batch;
        // No pages of no tokens: the library says so.
        let max_pages = (size.tokens + STEPS).div_ceil(page_size.max(1));
        let pages = batch * max_pages;
        let layers = Cache::create_layers(&engine.context, place, LAYERS, page_size, pages)?;
        let synthetic = Layer::new(SEED, heads, SOFTMAX_SCALE);
        let text = Text::new(place, &synthetic.tokens(TEXT))?;
        // Layers look through windows of one set, each a token further on.
        let queries = QuerySet::new(engine, heads, &synthetic.queries(TEXT, batch + LAYERS - 1))?;
        let mut rng = Rng::new(SEED, 6, heads as u64);
        let mut free_pages: Vec<i32> = (0..pages as i32).collect();
        rng.shuffle(&mut free_pages);
        let workspace = engine.context.workspace_size(&DecodeLimits {
            batch_invariant: call.batch_invariant,
            batch,
            q_len: 1,
            heads,
            seq_len: max_pages * page_size,
        })?;
        let rows = LAYERS * batch * heads;
        let mut model = Self {
            engine,
            size,
            call,
            rng,
            layers,
            text,
            queries,
            rows: Vec::new(),
            free_pages,
            max_pages,
            seq_lens: place.upload(&vec![0; batch])?,
            slots: place.upload(&vec![-1; batch])?,
            block_table: place.upload(&vec![-1; pages])?,
            content: place.buffer(LAYERS * batch * CONTENT)?,
            rope: place.buffer(LAYERS * batch * ROPE)?,
            out: place.upload(&vec![bf16::NAN; rows * CONTENT])?,
            lse: place.upload(&vec![f32::NAN; rows])?,
            workspace: place.buffer(workspace as usize)?,
        };
        for b in 0..batch {
            // From all of the tokens down to half of them.
            let sequence = model.prompt(size.tokens - size.tokens * b / (2 * batch))?;
            model.rows.push(Some(sequence));
        }
        Ok(model)
    }

    /// A new sequence with its prompt in every layer, appended outside the graph.
    fn prompt(&mut self, len: usize) -> Result<Sequence> {
        let first = self.rng.below(TEXT);
        let mut sequence = Sequence { first, len: 0, pages: Vec::new() };
        let slots = (0..len).map(|_| self.next_slot(&mut sequence)).collect::<Result<Vec<_>>>()?;
        let slots = self.engine.place.upload(&slots)?;
        for (layer, cache) in self.layers.iter().enumerate() {
            let rows = sequence.first_in(layer, self.longest())..;
            let part = |width: usize| rows.start * width..(rows.start + len) * width;
            let (content, rope) =
                (self.text.content_there.slice(part(CONTENT)), self.text.rope_there.slice(part(ROPE)));
            cache.append(content.into(), rope.into(), slots.all())?;
        }
        // The slots are freed here.
        self.engine.place.synchronize()?;
        Ok(sequence)
    }

    fn longest(&self) -> usize {
        self.size.tokens + STEPS
    }

    /// The slot of the next token, on a new page where the last one is full.
    fn next_slot(&mut self, sequence: &mut Sequence) -> Result<i64> {
        let page_size = self.call.page_size;
        if sequence.len == sequence.pages.len() * page_size {
            let page = self.free_pages.pop().ok_or_else(|| Failure::new("the cache has no free page"))?;
            sequence.pages.push(page);
        }
        let page = sequence.pages[sequence.len / page_size] as i64;
        let slot = page * page_size as i64 + (sequence.len % page_size) as i64;
        sequence.len += 1;
        Ok(slot)
    }

    /// Two rows swap, one sequence ends, and a row without one gets a short prompt.
    fn change_batch(&mut self) -> Result<()> {
        let batch = self.size.batch;
        if let Some(empty) = self.rows.iter().position(Option::is_none) {
            let len = 1 + self.rng.below(self.size.tokens / 4);
            self.rows[empty] = Some(self.prompt(len)?);
        }
        let (a, b, gone) = (self.rng.below(batch), self.rng.below(batch), self.rng.below(batch));
        self.rows.swap(a, b);
        if let Some(sequence) = self.rows[gone].take() {
            self.free_pages.extend(sequence.pages);
        }
        Ok(())
    }

    /// Every sequence's next token: new numbers in the buffers that the graph reads.
    fn grow(&mut self) -> Result<()> {
        let batch = self.size.batch;
        let (mut lens, mut slots) = (vec![0i32; batch], vec![-1i64; batch]);
        let mut table = vec![-1; batch * self.max_pages];
        let mut content = vec![bf16::ZERO; LAYERS * batch * CONTENT];
        let mut rope = vec![bf16::ZERO; LAYERS * batch * ROPE];
        let mut rows = std::mem::take(&mut self.rows);
        for (b, row) in rows.iter_mut().enumerate() {
            let Some(sequence) = row else { continue };
            slots[b] = self.next_slot(sequence)?;
            lens[b] = sequence.len as i32;
            table[b * self.max_pages..][..sequence.pages.len()].copy_from_slice(&sequence.pages);
            for layer in 0..LAYERS {
                let (from, to) = (sequence.first_in(layer, self.longest()) + sequence.len - 1, layer * batch + b);
                content[to * CONTENT..][..CONTENT].copy_from_slice(&self.text.content[from * CONTENT..][..CONTENT]);
                rope[to * ROPE..][..ROPE].copy_from_slice(&self.text.rope[from * ROPE..][..ROPE]);
            }
        }
        self.rows = rows;
        self.seq_lens.write(0, &lens)?;
        self.slots.write(0, &slots)?;
        self.block_table.write(0, &table)?;
        self.content.write(0, &content)?;
        self.rope.write(0, &rope)?;
        // The host's copies are freed here.
        self.engine.place.synchronize()
    }

    fn step(&self) -> Result<()> {
        (0..LAYERS).try_for_each(|layer| self.step_of(layer))
    }

    fn step_of(&self, layer: usize) -> Result<()> {
        self.append(layer)?;
        self.decode(layer)
    }

    fn append(&self, layer: usize) -> Result<()> {
        let batch = self.size.batch;
        let part = |width: usize| layer * batch * width..(layer + 1) * batch * width;
        let (content, rope) = (self.content.slice(part(CONTENT)), self.rope.slice(part(ROPE)));
        self.layers[layer].append(content.into(), rope.into(), self.slots.all())
    }

    fn decode(&self, layer: usize) -> Result<()> {
        let rows = self.size.batch * self.call.heads;
        let part = |width: usize| layer * rows * width..(layer + 1) * rows * width;
        self.layers[layer].decode(&Decode {
            causal: false,
            batch_invariant: self.call.batch_invariant,
            batch: self.size.batch,
            q_len: 1,
            heads: self.call.heads,
            softmax_scale: SOFTMAX_SCALE,
            queries: self.queries.raw_rows(layer * self.call.heads..layer * self.call.heads + rows),
            seq_lens: self.seq_lens.all(),
            block_table: self.block_table.all(),
            max_pages: self.max_pages,
            max_seq_len: 0,
            out: self.out.slice(part(CONTENT)).into(),
            lse: self.lse.slice(part(1)),
            workspace: &self.workspace,
        })
    }

    /// Some layers' records of one sequence against its text, and some answers against attention over these records.
    fn check(&mut self, checked: &mut Checked) -> Result<()> {
        for _ in 0..LOOKS {
            let (layer, b) = (self.rng.below(LAYERS), self.rng.below(self.size.batch));
            let heads: Vec<usize> = (0..ROWS).map(|_| self.rng.below(self.call.heads)).collect();
            let answers = heads.iter().map(|head| self.answer(layer, b, *head)).collect::<Result<Vec<_>>>()?;
            checked.rows += answers.len();
            let Some(sequence) = &self.rows[b] else {
                if answers.iter().any(|(out, lse)| out.iter().any(|&x| x != 0.0) || *lse != f64::NEG_INFINITY) {
                    let text = format!("layer {layer}, row {b} has no tokens, and an answer other than zeros");
                    return Err(Failure::new(text));
                }
                continue;
            };
            let fetched = self.fetched(layer, sequence)?;
            check_prefix(&fetched, &self.text.rows(sequence.first_in(layer, self.longest()), sequence.len))?;
            let distances: Vec<Distance> = heads
                .par_iter()
                .zip(&answers)
                .map(|(head, (out, lse))| {
                    let query = self.queries.dequantised.row((layer + b) * self.call.heads + head);
                    Distance::of_row(query, &fetched, sequence.len, SOFTMAX_SCALE, (out, *lse))
                })
                .collect();
            distances.iter().for_each(|distance| checked.distance.add(distance));
        }
        Ok(())
    }

    fn answer(&self, layer: usize, b: usize, head: usize) -> Result<(Vec<f64>, f64)> {
        let row = (layer * self.size.batch + b) * self.call.heads + head;
        let out = self.out.read(row * CONTENT..(row + 1) * CONTENT)?;
        Ok((out.into_iter().map(f64::from).collect(), self.lse.read(row..row + 1)?[0] as f64))
    }

    fn fetched(&self, layer: usize, sequence: &Sequence) -> Result<Rows> {
        let place = &self.engine.place;
        let content: Buffer<f32> = place.buffer(sequence.len * CONTENT)?;
        let rope: Buffer<f32> = place.buffer(sequence.len * ROPE)?;
        let pages = place.upload(&sequence.pages)?;
        self.layers[layer].fetch_prefix(pages.all(), sequence.len, content.all().into(), rope.all().into())?;
        Ok(Rows { content: content.read(0..content.len())?, rope: rope.read(0..rope.len())? })
    }
}

impl Sequence {
    /// Where the sequence's text begins in a layer, so that no two layers hold the same and `longest` tokens fit.
    fn first_in(&self, layer: usize, longest: usize) -> usize {
        (self.first + 97 * layer) % (TEXT - longest + 1)
    }
}

impl Text {
    fn new(place: &Place, rows: &Rows) -> Result<Self> {
        let narrow = |values: &[f32]| values.iter().map(|&x| bf16::of(x)).collect::<Vec<_>>();
        let (content, rope) = (narrow(&rows.content), narrow(&rows.rope));
        let (content_there, rope_there) = (place.upload(&content)?, place.upload(&rope)?);
        Ok(Self { content, rope, content_there, rope_there })
    }

    fn rows(&self, first: usize, count: usize) -> Rows {
        let part = |values: &[bf16], width: usize| {
            values[first * width..(first + count) * width].iter().map(|x| x.to_f32()).collect()
        };
        Rows { content: part(&self.content, CONTENT), rope: part(&self.rope, ROPE) }
    }
}
