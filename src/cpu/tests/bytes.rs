//! Append, quant and fetch give the defined bytes, on every instruction set.

use proptest::prelude::*;

use super::fixture::*;
use crate::cpu::isa::Isa;
use crate::layout::{CONTENT_DIM, ROPE_DIM};
use crate::num::{bf16, f16};
use crate::request::*;

/// Rows that no rounding rule survives by luck: normal ones, wild ones, empty ones, and ones with a NaN or infinity.
fn row(random: &mut Random, n: usize) -> Vec<f32> {
    let exponent = random.below(250) as i32 - 140;
    let mut row = random.normals(n);
    match random.below(8) {
        0 => row.iter_mut().for_each(|v| *v = random.any_float()),
        1 => row.fill(0.0),
        2 => row.fill(-0.0),
        3 => row[random.below(n)] = f32::NAN,
        4 => row[random.below(n)] = f32::NEG_INFINITY,
        5 => row[random.below(n)] *= 1e6,
        6 => row.iter_mut().for_each(|v| *v = f32::from_bits(random.below(1 << 20) as u32)),
        _ => row.iter_mut().for_each(|v| *v = (f64::from(*v) * 2f64.powi(exponent)) as f32),
    }
    row
}

/// Tokens as a tensor holds them, and as floats after that.
struct Tokens {
    content: Vec<u8>,
    content_stride: usize,
    rope: Vec<u8>,
    rope_stride: usize,
    values: Vec<(Vec<f32>, Vec<f32>)>,
}

/// `n` rows with strides that pad by an odd number of elements.
fn tokens(random: &mut Random, dtype: Dtype, n: usize) -> Tokens {
    let mut tokens = Tokens {
        content: Vec::new(),
        content_stride: (CONTENT_DIM + 3) * dtype.bytes(),
        rope: Vec::new(),
        rope_stride: (ROPE_DIM + 1) * dtype.bytes(),
        values: Vec::new(),
    };
    for _ in 0..n {
        let content = to_bytes(dtype, &row(random, CONTENT_DIM + 3));
        let rope = to_bytes(dtype, &row(random, ROPE_DIM + 1));
        tokens.values.push((
            from_bytes(dtype, &content[..CONTENT_DIM * dtype.bytes()]),
            from_bytes(dtype, &rope[..ROPE_DIM * dtype.bytes()]),
        ));
        tokens.content.extend(content);
        tokens.rope.extend(rope);
    }
    tokens
}

fn check_append(seed: u64, dtype: Dtype, page_size: usize, threads: u32, isa: Isa) {
    let mut random = Random(seed);
    let n = 1 + random.below(80);
    let tokens = tokens(&mut random, dtype, n);
    let mut cache = Cache::poisoned(page_size, n.div_ceil(page_size) + 1, 2);
    let mut slots: Vec<i64> = (0..cache.view.num_slots()).collect();
    for i in 0..n {
        let other = i + random.below(slots.len() - i);
        slots.swap(i, other);
    }
    slots.truncate(n);
    slots[random.below(n)] = -1 - random.below(3) as i64;
    let mut wanted = Cache::poisoned(page_size, n.div_ceil(page_size) + 1, 2);
    for (i, &slot) in slots.iter().enumerate() {
        if slot >= 0 {
            let (content, rope) = &tokens.values[i];
            wanted.put(1, slot as usize, &Record::quantised(content, rope));
        }
    }
    let request = KAppendRequest {
        cache: cache.view,
        layer: 1,
        dtype,
        num_tokens: n as i64,
        content: rows(&tokens.content, tokens.content_stride),
        rope: rows(&tokens.rope, tokens.rope_stride),
        slots: slots.as_ptr(),
    };
    cpu(threads, isa).k_append(&request).unwrap();
    assert!(cache.bytes() == wanted.bytes(), "{isa:?} {dtype:?}");

    // Nothing is written when a slot is past the end.
    cache.bytes_mut().fill(7);
    slots[n - 1] = cache.view.num_slots();
    let error = cpu(threads, isa).k_append(&request).unwrap_err();
    let text = format!("slots[{}] is {}, not below {}", n - 1, slots[n - 1], slots[n - 1]);
    assert!(error.message.starts_with(&text), "{}", error.message);
    assert!(cache.bytes().iter().all(|&b| b == 7));
}

fn check_quant(seed: u64, dtype: Dtype, threads: u32, isa: Isa) {
    let mut random = Random(seed);
    let (n, heads) = (1 + random.below(9), 1 + random.below(20));
    let tokens = tokens(&mut random, dtype, n * heads);
    let mut content = vec![0u8; n * heads * CONTENT_DIM];
    let mut rope = vec![0u16; n * heads * ROPE_DIM];
    let mut scale = vec![0f32; n * heads];
    // Heads outermost: strides of any order are legal.
    let by_head = |stride: usize| (stride as i64, (stride * n) as i64);
    let (content_token, content_head) = by_head(tokens.content_stride);
    let (rope_token, rope_head) = by_head(tokens.rope_stride);
    let request = QQuantRequest {
        dtype,
        num_tokens: n as i64,
        num_heads: heads,
        content: HeadRows { ptr: tokens.content.as_ptr(), token_stride: content_token, head_stride: content_head },
        rope: HeadRows { ptr: tokens.rope.as_ptr(), token_stride: rope_token, head_stride: rope_head },
        q_content: content.as_mut_ptr(),
        q_rope: rope.as_mut_ptr().cast(),
        q_scale: scale.as_mut_ptr(),
    };
    cpu(threads, isa).q_quant(&request).unwrap();
    for token in 0..n {
        for head in 0..heads {
            let i = token * heads + head;
            let got = Record {
                content: content[i * CONTENT_DIM..(i + 1) * CONTENT_DIM].to_vec(),
                rope: rope[i * ROPE_DIM..(i + 1) * ROPE_DIM].to_vec(),
                scale: scale[i].to_bits(),
            };
            let (content, rope) = &tokens.values[head * n + token];
            assert_eq!(got, Record::quantised(content, rope), "{isa:?} {dtype:?} {token} {head}");
        }
    }
}

/// The bytes that a fetched row must have: the product rounded once, NaN canonical.
fn narrowed(dtype: Dtype, row: &[f32]) -> Vec<u8> {
    match dtype {
        Dtype::Bf16 => row.iter().flat_map(|&v| bf16::encode(v).to_ne_bytes()).collect(),
        Dtype::F16 => row.iter().flat_map(|&v| f16::encode(v).to_ne_bytes()).collect(),
        Dtype::F32 => {
            let bits = |v: f32| if v.is_nan() { 0x7FFF_FFFF } else { v.to_bits() };
            row.iter().flat_map(|&v| bits(v).to_ne_bytes()).collect()
        }
    }
}

/// A cache whose layer 1 holds random bytes with mostly sane scales.
fn random_cache(random: &mut Random, page_size: usize, num_pages: usize) -> Cache {
    let mut cache = Cache::poisoned(page_size, num_pages, 2);
    for slot in 0..page_size * num_pages {
        let scale = if random.below(6) == 0 { random.any_float() } else { random.uniform() };
        let record = Record {
            content: (0..CONTENT_DIM).map(|_| random.bits() as u8).collect(),
            rope: (0..ROPE_DIM).map(|_| random.bits() as u16).collect(),
            scale: scale.to_bits(),
        };
        cache.put(1, slot, &record);
    }
    cache
}

struct Fetched {
    content: Vec<u8>,
    rope: Vec<u8>,
}

const UNTOUCHED: u8 = 0x5A;

impl Fetched {
    fn strides(dtype: Dtype) -> (usize, usize) {
        ((CONTENT_DIM + 5) * dtype.bytes(), (ROPE_DIM + 7) * dtype.bytes())
    }

    fn untouched(dtype: Dtype, rows: usize) -> Self {
        let (content, rope) = Self::strides(dtype);
        Self { content: vec![UNTOUCHED; content * rows], rope: vec![UNTOUCHED; rope * rows] }
    }

    fn put(&mut self, dtype: Dtype, row: usize, record: &Record) {
        let (content_stride, rope_stride) = Self::strides(dtype);
        let content = narrowed(dtype, &record.content_times(record.scale()));
        let rope = narrowed(dtype, &record.rope_times(record.scale()));
        self.content[row * content_stride..][..content.len()].copy_from_slice(&content);
        self.rope[row * rope_stride..][..rope.len()].copy_from_slice(&rope);
    }

    fn request(&mut self, cache: &Cache, dtype: Dtype, num_tokens: usize, source: FetchSource) -> FetchRequest {
        let (content_stride, rope_stride) = Self::strides(dtype);
        FetchRequest {
            cache: cache.view,
            layer: 1,
            dtype,
            num_tokens: num_tokens as i64,
            source,
            content: rows_mut(&mut self.content, content_stride),
            rope: rows_mut(&mut self.rope, rope_stride),
        }
    }
}

fn check_fetch_slots(seed: u64, dtype: Dtype, page_size: usize, threads: u32, isa: Isa) {
    let mut random = Random(seed);
    let cache = random_cache(&mut random, page_size, 3);
    let n = 1 + random.below(100);
    let end = cache.view.num_slots() as usize;
    let mut slots: Vec<i64> = (0..n).map(|_| random.below(end + 4) as i64 - 4).collect();
    let (mut got, mut wanted) = (Fetched::untouched(dtype, n), Fetched::untouched(dtype, n));
    for (i, &slot) in slots.iter().enumerate() {
        if slot >= 0 {
            wanted.put(dtype, i, &cache.record(1, slot as usize));
        }
    }
    let mut request = got.request(&cache, dtype, n, FetchSource::Slots(slots.as_ptr()));
    cpu(threads, isa).fetch_dequant(&request).unwrap();
    assert!(got.content == wanted.content && got.rope == wanted.rope, "{isa:?} {dtype:?}");

    // Either part may be left out.
    request.content.ptr = std::ptr::null_mut();
    got.rope.fill(UNTOUCHED);
    cpu(threads, isa).fetch_dequant(&request).unwrap();
    assert!(got.rope == wanted.rope);

    slots[0] = cache.view.num_slots();
    let error = cpu(threads, isa).fetch_dequant(&request).unwrap_err();
    assert!(error.message.starts_with(&format!("slots[0] is {end}, not below {end}")), "{}", error.message);
}

fn check_fetch_table(seed: u64, dtype: Dtype, page_size: usize, threads: u32, isa: Isa) {
    let mut random = Random(seed);
    let cache = random_cache(&mut random, page_size, 5);
    let (batch, columns) = (1 + random.below(6), 4);
    // Only entries that are needed hold pages.
    let mut table = vec![2_147_480_000; batch * columns];
    let (mut starts, mut cu_tokens) = (Vec::new(), vec![random.below(3) as i32]);
    for sequence in 0..batch {
        let first = random.below(page_size * columns);
        let count = random.below(page_size * columns - first + 1) * usize::from(random.below(4) > 0);
        starts.push(first as i32);
        cu_tokens.push(cu_tokens[sequence] + count as i32);
        if count > 0 {
            for column in first / page_size..=(first + count - 1) / page_size {
                table[sequence * columns + column] = random.below(5) as i32;
            }
        }
    }
    let rows = cu_tokens[batch] as usize + 3;
    let (mut got, mut wanted) = (Fetched::untouched(dtype, rows), Fetched::untouched(dtype, rows));
    for sequence in 0..batch {
        for row in cu_tokens[sequence]..cu_tokens[sequence + 1] {
            let token = (starts[sequence] + row - cu_tokens[sequence]) as usize;
            let page = table[sequence * columns + token / page_size] as usize;
            wanted.put(dtype, row as usize, &cache.record(1, page * page_size + token % page_size));
        }
    }
    let source = FetchSource::BlockTable {
        block_table: Rows { ptr: table.as_ptr(), stride: columns as i64 * 4 },
        max_pages: columns as u32,
        batch: batch as u32,
        starts: starts.as_ptr(),
        cu_tokens: cu_tokens.as_ptr(),
    };
    let request = got.request(&cache, dtype, rows, source);
    cpu(threads, isa).fetch_dequant(&request).unwrap();
    assert!(got.content == wanted.content && got.rope == wanted.rope, "{isa:?} {dtype:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn on_every_instruction_set(
        seed: u64,
        dtype in prop::sample::select(DTYPES.to_vec()),
        page_size in prop::sample::select(vec![8usize, 16, 24, 64, 256]),
        threads in 1u32..4,
    ) {
        for isa in Isa::all() {
            check_append(seed, dtype, page_size, threads, isa);
            check_quant(seed, dtype, threads, isa);
            check_fetch_slots(seed, dtype, page_size, threads, isa);
            check_fetch_table(seed, dtype, page_size, threads, isa);
        }
    }
}

fn fetch_error(table: &[i32], starts: &[i32], cu_tokens: &[i32], num_tokens: usize) -> String {
    let cache = Cache::poisoned(8, 5, 2);
    let mut out = Fetched::untouched(Dtype::F32, num_tokens);
    let batch = starts.len();
    let source = FetchSource::BlockTable {
        block_table: Rows { ptr: table.as_ptr(), stride: (table.len() / batch * 4) as i64 },
        max_pages: (table.len() / batch) as u32,
        batch: batch as u32,
        starts: starts.as_ptr(),
        cu_tokens: cu_tokens.as_ptr(),
    };
    let request = out.request(&cache, Dtype::F32, num_tokens, source);
    let error = cpu(1, Isa::detect()).fetch_dequant(&request).unwrap_err();
    assert!(out.content.iter().chain(&out.rope).all(|&b| b == UNTOUCHED));
    error.message
}

#[test]
fn a_bad_fetch_is_named_before_anything_is_written() {
    assert_eq!(
        fetch_error(&[0, 1, 2, 5], &[0, 0], &[0, 8, 17], 17),
        "block_table[1][1] is page 5, not in 0..num_pages 5"
    );
    assert_eq!(
        fetch_error(&[0, 1, 2, -3], &[0, 9], &[0, 8, 15], 15),
        "block_table[1][1] is page -3, not in 0..num_pages 5"
    );
    assert_eq!(fetch_error(&[0, 1], &[9], &[0, 8], 8), "sequence 0 ends at token 17, past max_pages 2 * page_size 8");
    assert_eq!(fetch_error(&[0, 1], &[-1], &[0, 8], 8), "starts[0] is -1, less than 0");
    assert_eq!(fetch_error(&[0, 1], &[0], &[0, 8], 7), "num_tokens 7 is less than 8 = cu_tokens[1]");
    assert_eq!(
        fetch_error(&[0, 1], &[0], &[4, 3], 7),
        "cu_tokens[0] is 4 and the next 3: they must start at 0 or more and never decrease"
    );
}
