//! What each chart shows.

use plotters::prelude::*;

use super::chart::{Chart, Mark, Series, colour, from_zero};
use super::rows::Row;
use crate::bench::decode::{Ceilings, H200, flops};
use crate::bench::shapes::Shape;
use crate::failure::Result;
use crate::layer::RECORD_BYTES;

type Figure = fn(&[Row]) -> Result<Option<String>>;

pub const ALL: [(&str, Figure); 4] =
    [("figure6.svg", figure6), ("figure7.svg", figure7), ("roofline.svg", roofline), ("speedup.svg", speedup)];

/// The heads that a rank has at TP8, TP2 and TP1.
const RANK_HEADS: [usize; 3] = [16, 64, 128];
/// A call this large keeps a whole GPU busy.
const LARGE: usize = 1 << 20;

/// Rates by length for 32 sequences, ours and FlashMLA's.
fn figure6(rows: &[Row]) -> Result<Option<String>> {
    let chart = Chart {
        title: "Decode, 32 sequences, one query token",
        x: "cached tokens of a sequence",
        y: "TFLOP/s",
        x_label: &thousands,
        x_labels: 8,
    };
    let lines = RANK_HEADS.map(|heads| (format!("{heads} heads"), heads));
    let chosen = |shape: &Shape, heads: usize| (shape.batch, shape.q_len, shape.heads) == (32, 1, heads);
    rates(rows, &chart, &lines, chosen, |shape| shape.length)
}

/// Rates by heads for 32 sequences of 16,384 tokens, a line for every number of query tokens.
fn figure7(rows: &[Row]) -> Result<Option<String>> {
    let chart = Chart {
        title: "Decode, 32 sequences of 16,384 tokens",
        x: "heads",
        y: "TFLOP/s",
        x_label: &|heads| format!("{heads:.0}"),
        x_labels: 8,
    };
    let lines = [1, 2, 4].map(|q_len| (format!("{q_len} query token{}", if q_len == 1 { "" } else { "s" }), q_len));
    let chosen = |shape: &Shape, q_len: usize| (shape.batch, shape.length, shape.q_len) == (32, 16_384, q_len);
    rates(rows, &chart, &lines, chosen, |shape| shape.heads)
}

/// Rates by some number of the shape, on an axis of octaves: for each line, ours, and dashed FlashMLA's where it was
/// measured.
fn rates(
    rows: &[Row],
    chart: &Chart,
    lines: &[(String, usize)],
    chosen: impl Fn(&Shape, usize) -> bool,
    x: impl Fn(&Shape) -> usize,
) -> Result<Option<String>> {
    let mut series = Vec::new();
    for (index, (name, of)) in lines.iter().enumerate() {
        let mut chosen: Vec<&Row> = rows.iter().filter(|row| chosen(&row.shape, *of)).collect();
        chosen.sort_by_key(|row| x(&row.shape));
        let points = |time: fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
            chosen.iter().filter_map(|row| Some((x(&row.shape) as f64, row.teraflops(time(row)?)))).collect()
        };
        let kinds = [
            (format!("{name}, libsnapmla"), Mark::Line, points(|row| Some(row.ours))),
            (format!("{name}, FlashMLA BF16"), Mark::Dashed, points(|row| row.bf16)),
        ];
        for (name, mark, points) in kinds {
            // A line needs two ends.
            if points.len() > 1 {
                series.push(Series { name, colour: colour(index), mark, points });
            }
        }
    }
    let xs = || series.iter().flat_map(|one| &one.points).map(|point| point.0);
    let (Some(low), Some(high)) = (xs().reduce(f64::min), xs().reduce(f64::max)) else { return Ok(None) };
    chart.draw((low..high).log_scale().base(2.0), from_zero(&series), &series).map(Some)
}

/// Rates of large calls by operations a byte, under what the memory and the tensor cores allow.
fn roofline(rows: &[Row]) -> Result<Option<String>> {
    let large: Vec<&Row> = rows.iter().filter(|row| row.shape.tokens() >= LARGE).collect();
    let intensity = |shape: &Shape| flops(shape) / (shape.tokens() * RECORD_BYTES) as f64;
    let Some(largest) = large.iter().max_by(|a, b| intensity(&a.shape).total_cmp(&intensity(&b.shape))) else {
        return Ok(None);
    };
    let highest = intensity(&largest.shape);
    // The same for every shape: how many of a token's operations are FP8 does not depend on it.
    let tensor = flops(&largest.shape) / Ceilings { read: f64::INFINITY, ..H200 }.floor(&largest.shape);
    let (low, high) = (16.0, (2.0 * highest).max(1024.0));
    let roof = [low, tensor / H200.read, high].map(|x| (x, (H200.read * x).min(tensor) * 1e-12)).to_vec();
    let points = |time: fn(&Row) -> Option<f64>| {
        large.iter().filter_map(|row| Some((intensity(&row.shape), row.teraflops(time(row)?)))).collect()
    };
    let series = |name: &str, colour, mark, points| Series { name: name.into(), colour, mark, points };
    let mut series = vec![
        series("reading at 4.53 TB/s, then the tensor cores", BLACK, Mark::Line, roof),
        series("libsnapmla", colour(0), Mark::Dots, points(|row| Some(row.ours))),
        series("FlashMLA BF16, by our bytes", colour(1), Mark::Dots, points(|row| row.bf16)),
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
    let y = (0.8 * least..1.5e-12 * tensor).log_scale();
    chart.draw((low..high).log_scale().base(2.0), y, &series).map(Some)
}

/// How many times as fast as FlashMLA, a bar for every shape of one query token.
fn speedup(rows: &[Row]) -> Result<Option<String>> {
    let chosen = |heads: usize| {
        let mut chosen: Vec<(&Row, f64)> = rows
            .iter()
            .filter(|row| row.shape.q_len == 1 && row.shape.heads == heads)
            .filter_map(|row| Some((row, row.bf16? / row.ours)))
            .collect();
        chosen.sort_by_key(|(row, _)| (row.shape.batch, row.shape.length));
        chosen
    };
    let mut shapes: Vec<(usize, usize)> = RANK_HEADS
        .iter()
        .flat_map(|&heads| chosen(heads))
        .map(|(row, _)| (row.shape.batch, row.shape.length))
        .collect();
    shapes.sort_unstable();
    shapes.dedup();
    if shapes.is_empty() {
        return Ok(None);
    }
    let group = RANK_HEADS.len() as f64 + 1.0;
    let place = |row: &Row| {
        shapes.iter().position(|shape| *shape == (row.shape.batch, row.shape.length)).unwrap_or(0) as f64 * group
    };
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

fn thousands(tokens: f64) -> String {
    if tokens >= 1024.0 { format!("{:.0}k", tokens / 1024.0) } else { format!("{tokens:.0}") }
}
