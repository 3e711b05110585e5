//! What each chart shows.

use plotters::prelude::*;

use super::chart::{Chart, Mark, Series, colour, from_zero};
use super::rows::Row;
use crate::failure::Result;

type Figure = fn(&[Row]) -> Result<Option<String>>;

pub const ALL: [(&str, Figure); 4] =
    [("figure6.svg", figure6), ("figure7.svg", figure7), ("roofline.svg", roofline), ("speedup.svg", speedup)];

/// The heads that a rank has at TP8, TP2 and TP1.
const RANK_HEADS: [u64; 3] = [16, 64, 128];
/// A call this large keeps a whole GPU busy.
const LARGE: u64 = 1 << 20;
/// What an H200 streams when only reading, measured.
const READ_BYTES_PER_S: f64 = 4.53e12;
/// Dense tensor-core peaks measured on an H200 at its power limit: FP8 for 2,048 of a token's 2,176 operations a head,
/// BF16 for rope's 128.
const TENSOR_FLOPS: f64 = 2176.0 / (2048.0 / 1459e12 + 128.0 / 788e12);
const RECORD_BYTES: f64 = 644.0;

/// Rates by length for 32 sequences, ours and FlashMLA's.
fn figure6(rows: &[Row]) -> Result<Option<String>> {
    let mut series = Vec::new();
    for (index, heads) in RANK_HEADS.into_iter().enumerate() {
        let mut chosen: Vec<&Row> =
            rows.iter().filter(|row| row.batch == 32 && row.q_len == 1 && row.heads == heads).collect();
        chosen.sort_by_key(|row| row.length);
        let x = |row: &Row| row.length as f64;
        add_rates(&mut series, &format!("{heads} heads"), colour(index), &chosen, x);
    }
    let Some((low, high)) = x_range(&series) else { return Ok(None) };
    let chart = Chart {
        title: "Decode, 32 sequences, one query token",
        x: "cached tokens of a sequence",
        y: "TFLOP/s",
        x_label: &thousands,
        x_labels: 8,
    };
    chart.draw((low..high).log_scale().base(2.0), from_zero(&series), &series).map(Some)
}

/// Rates by heads for 32 sequences of 16,384 tokens, a line for every number of query tokens.
fn figure7(rows: &[Row]) -> Result<Option<String>> {
    let mut series = Vec::new();
    for (index, q_len) in [1, 2, 4].into_iter().enumerate() {
        let mut chosen: Vec<&Row> =
            rows.iter().filter(|row| row.batch == 32 && row.length == 16_384 && row.q_len == q_len).collect();
        chosen.sort_by_key(|row| row.heads);
        let x = |row: &Row| row.heads as f64;
        add_rates(
            &mut series,
            &format!("{q_len} query token{}", if q_len == 1 { "" } else { "s" }),
            colour(index),
            &chosen,
            x,
        );
    }
    let Some((low, high)) = x_range(&series) else { return Ok(None) };
    let chart = Chart {
        title: "Decode, 32 sequences of 16,384 tokens",
        x: "heads",
        y: "TFLOP/s",
        x_label: &|heads| format!("{heads:.0}"),
        x_labels: 8,
    };
    chart.draw((low..high).log_scale().base(2.0), from_zero(&series), &series).map(Some)
}

/// Rates of large calls by operations a byte, under what the memory and the tensor cores allow.
fn roofline(rows: &[Row]) -> Result<Option<String>> {
    let large: Vec<&Row> = rows.iter().filter(|row| row.tokens() >= LARGE).collect();
    let intensity = |row: &Row| row.flops() / (row.tokens() as f64 * RECORD_BYTES);
    let Some(highest) = large.iter().map(|row| intensity(row)).reduce(f64::max) else { return Ok(None) };
    let roof = |intensity: f64| (READ_BYTES_PER_S * intensity).min(TENSOR_FLOPS) * 1e-12;
    let (low, high) = (16.0, (2.0 * highest).max(1024.0));
    let ridge = TENSOR_FLOPS / READ_BYTES_PER_S;
    let points = |time: &dyn Fn(&Row) -> Option<f64>| {
        large.iter().filter_map(|row| Some((intensity(row), row.flops() / time(row)? * 1e-12))).collect::<Vec<_>>()
    };
    let mut series = vec![
        Series {
            name: "reading at 4.53 TB/s, then the tensor cores".into(),
            colour: BLACK,
            mark: Mark::Line,
            points: [low, ridge, high].map(|x| (x, roof(x))).to_vec(),
        },
        Series {
            name: "libsnapmla".into(),
            colour: colour(0),
            mark: Mark::Dots,
            points: points(&|row| Some(row.ours)),
        },
        Series {
            name: "FlashMLA BF16, by our bytes".into(),
            colour: colour(1),
            mark: Mark::Dots,
            points: points(&|row| row.bf16),
        },
    ];
    series.retain(|one| !one.points.is_empty());
    let least = series.iter().flat_map(|one| &one.points).map(|point| point.1).fold(f64::INFINITY, f64::min);
    let chart = Chart {
        title: "Decode of a million cached tokens and more",
        x: "operations for a byte of cache",
        y: "TFLOP/s",
        x_label: &|x| format!("{x:.0}"),
        x_labels: 8,
    };
    let y = (0.8 * least..1.5 * TENSOR_FLOPS * 1e-12).log_scale();
    chart.draw((low..high).log_scale().base(2.0), y, &series).map(Some)
}

/// How many times as fast as FlashMLA, a bar for every shape of one query token.
fn speedup(rows: &[Row]) -> Result<Option<String>> {
    let chosen = |heads: u64| {
        let mut chosen: Vec<(&Row, f64)> = rows
            .iter()
            .filter(|row| row.q_len == 1 && row.heads == heads)
            .filter_map(|row| Some((row, row.bf16? / row.ours)))
            .collect();
        chosen.sort_by_key(|(row, _)| (row.batch, row.length));
        chosen
    };
    let mut shapes: Vec<(u64, u64)> =
        RANK_HEADS.iter().flat_map(|&heads| chosen(heads)).map(|(row, _)| (row.batch, row.length)).collect();
    shapes.sort_unstable();
    shapes.dedup();
    if shapes.is_empty() {
        return Ok(None);
    }
    let group = RANK_HEADS.len() as f64 + 1.0;
    let place =
        |row: &Row| shapes.iter().position(|shape| *shape == (row.batch, row.length)).unwrap_or(0) as f64 * group;
    let mut series: Vec<Series> = RANK_HEADS
        .into_iter()
        .enumerate()
        .map(|(index, heads)| Series {
            name: format!("{heads} heads"),
            colour: colour(index),
            mark: Mark::Bars,
            points: chosen(heads).into_iter().map(|(row, ratio)| (place(row) + index as f64, ratio)).collect(),
        })
        .collect();
    let end = shapes.len() as f64 * group - 1.0;
    let y = from_zero(&series);
    series.push(Series {
        name: String::new(),
        colour: BLACK,
        mark: Mark::Dashed,
        points: vec![(-1.0, 1.0), (end, 1.0)],
    });
    let middle = (group - 2.0) / 2.0;
    let label = |x: f64| {
        let at = (x - middle) / group;
        match shapes.get(at.round() as usize) {
            Some((batch, length)) if at >= -0.1 && (at - at.round()).abs() < 0.1 => {
                format!("{batch} x {}", thousands(*length as f64))
            }
            _ => String::new(),
        }
    };
    let chart = Chart {
        title: "Times as fast as FlashMLA BF16, one query token",
        x: "sequences x cached tokens",
        y: "speedup",
        x_label: &label,
        // One key point a whole number, so that each group's middle has one.
        x_labels: 2 * (end as usize + 2),
    };
    chart.draw((-1.0..end).step(1.0), y, &series).map(Some)
}

/// A line of ours, and a dashed one of FlashMLA's where it was measured.
fn add_rates(series: &mut Vec<Series>, name: &str, colour: RGBColor, rows: &[&Row], x: impl Fn(&Row) -> f64) {
    let points = |time: &dyn Fn(&Row) -> Option<f64>| {
        rows.iter().filter_map(|row| Some((x(row), row.flops() / time(row)? * 1e-12))).collect::<Vec<_>>()
    };
    let kinds = [
        (format!("{name}, libsnapmla"), Mark::Line, points(&|row| Some(row.ours))),
        (format!("{name}, FlashMLA BF16"), Mark::Dashed, points(&|row| row.bf16)),
    ];
    for (name, mark, points) in kinds {
        // A line needs two ends.
        if points.len() > 1 {
            series.push(Series { name, colour, mark, points });
        }
    }
}

fn x_range(series: &[Series]) -> Option<(f64, f64)> {
    let xs = || series.iter().flat_map(|one| &one.points).map(|point| point.0);
    Some((xs().reduce(f64::min)?, xs().reduce(f64::max)?))
}

fn thousands(tokens: f64) -> String {
    if tokens >= 1024.0 { format!("{:.0}k", tokens / 1024.0) } else { format!("{tokens:.0}") }
}
