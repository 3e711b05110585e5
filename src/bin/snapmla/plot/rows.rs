//! The rows of result files, whichever program wrote them.

use std::path::Path;

use serde::Deserialize;

use crate::failure::{Context, Failure, Result};

/// A decode's shape, and the seconds it took.
pub struct Row {
    pub batch: u64,
    pub length: u64,
    pub heads: u64,
    pub q_len: u64,
    pub ours: f64,
    pub bf16: Option<f64>,
}

impl Row {
    pub fn tokens(&self) -> u64 {
        self.batch * self.length
    }

    /// Floating-point operations: 576 + 512 multiply-adds a head, query token and cached token.
    pub fn flops(&self) -> f64 {
        2.0 * 1088.0 * (self.tokens() * self.heads * self.q_len) as f64
    }

    fn shape(&self) -> [u64; 4] {
        [self.batch, self.length, self.heads, self.q_len]
    }
}

#[derive(Deserialize)]
struct File {
    rows: Option<Vec<Compared>>,
    decode: Option<Vec<Benched>>,
}

#[derive(Deserialize)]
struct Compared {
    batch: u64,
    length: u64,
    heads: u64,
    q_len: u64,
    snapmla_us: f64,
    bf16_us: Option<f64>,
}

#[derive(Deserialize)]
struct Benched {
    batch: u64,
    length: u64,
    heads: u64,
    q_len: u64,
    median: f64,
}

/// Adds a file's rows; a shape that is there already is measured anew.
pub fn read(path: &Path, rows: &mut Vec<Row>) -> Result<()> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).context(name)?;
    let file: File = serde_json::from_str(&text).context(name)?;
    if file.rows.is_none() && file.decode.is_none() {
        return Err(Failure::new(format!(
            "{}: neither compare.json nor bench.json: no \"rows\", no \"decode\"",
            name()
        )));
    }
    let compared = file.rows.into_iter().flatten().map(|row| Row {
        batch: row.batch,
        length: row.length,
        heads: row.heads,
        q_len: row.q_len,
        ours: row.snapmla_us * 1e-6,
        bf16: row.bf16_us.map(|us| us * 1e-6),
    });
    let benched = file.decode.into_iter().flatten().map(|row| Row {
        batch: row.batch,
        length: row.length,
        heads: row.heads,
        q_len: row.q_len,
        ours: row.median,
        bf16: None,
    });
    for row in compared.chain(benched) {
        let sound = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        let shape = row.shape();
        if shape.contains(&0) || !sound(row.ours) || !row.bf16.is_none_or(sound) {
            return Err(Failure::new(format!("{}: a row of {shape:?} that no decode can have", name())));
        }
        rows.retain(|other| other.shape() != shape);
        rows.push(row);
    }
    Ok(())
}
