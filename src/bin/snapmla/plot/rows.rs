//! The rows of result files, whichever program wrote them.

use std::path::Path;

use serde::Deserialize;

use crate::bench::decode::flops;
use crate::bench::shapes::Shape;
use crate::failure::{Context, Failure, Result};

/// A decode's shape, and the seconds it took.
pub struct Row {
    pub shape: Shape,
    pub ours: f64,
    pub bf16: Option<f64>,
}

impl Row {
    /// Of a call that takes so many seconds.
    pub fn teraflops(&self, seconds: f64) -> f64 {
        flops(&self.shape) / seconds * 1e-12
    }
}

#[derive(Deserialize)]
struct File {
    rows: Option<Vec<Compared>>,
    decode: Option<Vec<Benched>>,
}

#[derive(Deserialize)]
struct Compared {
    #[serde(flatten)]
    shape: Shape,
    snapmla_us: f64,
    bf16_us: Option<f64>,
}

#[derive(Deserialize)]
struct Benched {
    #[serde(flatten)]
    shape: Shape,
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
        shape: row.shape,
        ours: row.snapmla_us * 1e-6,
        bf16: row.bf16_us.map(|us| us * 1e-6),
    });
    let benched = file.decode.into_iter().flatten().map(|row| Row { shape: row.shape, ours: row.median, bf16: None });
    for row in compared.chain(benched) {
        row.shape.check().context(name)?;
        if let Some(time) =
            [Some(row.ours), row.bf16].into_iter().flatten().find(|time| !(time.is_finite() && *time > 0.0))
        {
            return Err(Failure::new(format!("{}: {}: {time} seconds", name(), row.shape)));
        }
        rows.retain(|other| other.shape != row.shape);
        rows.push(row);
    }
    Ok(())
}
