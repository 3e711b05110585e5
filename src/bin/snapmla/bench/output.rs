//! Bench results as text, JSON and CSV.

use std::fmt::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Numbers;
use crate::table::{Columns, duration, flop_rate, rate};

pub fn text(numbers: &Numbers) -> String {
    let mut text = format!("{}\n{}\n\n", numbers.device, numbers.method);
    if !numbers.decode.is_empty() {
        let mut columns = Columns::new(&["batch", "length", "heads", "q_len", "time", "rate", "read", "of floor"]);
        for line in &numbers.decode {
            columns.add(vec![
                line.shape.batch.to_string(),
                line.shape.length.to_string(),
                line.shape.heads.to_string(),
                line.shape.q_len.to_string(),
                duration(line.timing.median),
                flop_rate(line.tflops * 1e12),
                rate(line.bytes_per_s),
                format!("{:.0} %", 100.0 * line.share_of_floor),
            ]);
        }
        text += &columns.to_string();
    }
    if !numbers.operations.is_empty() {
        let mut columns = Columns::new(&["operation", "tokens", "time", "read + written", "of a copy", "plain copy"]);
        for line in &numbers.operations {
            columns.add(vec![
                line.operation.into(),
                line.tokens.to_string(),
                duration(line.timing.median),
                rate(line.bytes_per_s),
                format!("{:.0} %", 100.0 * line.share_of_copy),
                duration(line.plain_copy),
            ]);
        }
        text += &columns.to_string();
    }
    if !numbers.uneven.is_empty() {
        let mut columns = Columns::new(&["batch", "heads", "tokens", "longest", "uneven", "even", "uneven / even"]);
        for line in &numbers.uneven {
            columns.add(vec![
                line.batch.to_string(),
                line.heads.to_string(),
                line.tokens.to_string(),
                line.longest.to_string(),
                duration(line.uneven.median),
                duration(line.even.median),
                format!("{:.3}", line.ratio),
            ]);
        }
        text += &columns.to_string();
    }
    if !numbers.layers.is_empty() {
        let mut columns = Columns::new(&[
            "layers",
            "batch",
            "tokens",
            "heads",
            "a layer",
            "append",
            "decode",
            "steps",
            "rows",
            "relative L2",
        ]);
        for line in &numbers.layers {
            columns.add(vec![
                line.layers.to_string(),
                line.batch.to_string(),
                line.tokens.to_string(),
                line.heads.to_string(),
                duration(line.layer.median),
                duration(line.append.median),
                duration(line.decode.median),
                line.steps.to_string(),
                line.rows_checked.to_string(),
                format!("{:.1e}", line.error.out.relative_l2),
            ]);
        }
        text += &columns.to_string();
    }
    text
}

pub fn write(numbers: &Numbers, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("bench.json"), serde_json::to_string_pretty(numbers)? + "\n")?;
    if !numbers.decode.is_empty() {
        std::fs::write(folder.join("decode.csv"), decode_csv(numbers))?;
    }
    if !numbers.operations.is_empty() {
        std::fs::write(folder.join("operations.csv"), operations_csv(numbers))?;
    }
    if !numbers.uneven.is_empty() {
        std::fs::write(folder.join("uneven.csv"), uneven_csv(numbers))?;
    }
    if !numbers.layers.is_empty() {
        std::fs::write(folder.join("layers.csv"), layers_csv(numbers))?;
    }
    Ok(())
}

fn decode_csv(numbers: &Numbers) -> String {
    let mut csv = String::from("batch,length,heads,q_len,median_us,least_us,most_us,tflops,gb_per_s,floor_us\n");
    for line in &numbers.decode {
        let (shape, timing) = (&line.shape, &line.timing);
        // Writing to a string does not fail.
        let _ = writeln!(
            csv,
            "{},{},{},{},{:.3},{:.3},{:.3},{:.2},{:.1},{:.3}",
            shape.batch,
            shape.length,
            shape.heads,
            shape.q_len,
            timing.median * 1e6,
            timing.least * 1e6,
            timing.most * 1e6,
            line.tflops,
            line.bytes_per_s * 1e-9,
            line.floor * 1e6
        );
    }
    csv
}

fn operations_csv(numbers: &Numbers) -> String {
    let mut csv = String::from("operation,tokens,median_us,least_us,most_us,gb_per_s,share_of_copy,plain_copy_us\n");
    for line in &numbers.operations {
        let timing = &line.timing;
        let _ = writeln!(
            csv,
            "{},{},{:.3},{:.3},{:.3},{:.1},{:.3},{:.3}",
            line.operation,
            line.tokens,
            timing.median * 1e6,
            timing.least * 1e6,
            timing.most * 1e6,
            line.bytes_per_s * 1e-9,
            line.share_of_copy,
            line.plain_copy * 1e6
        );
    }
    csv
}

fn uneven_csv(numbers: &Numbers) -> String {
    let mut csv = String::from("batch,heads,tokens,longest,uneven_us,even_us,ratio\n");
    for line in &numbers.uneven {
        let (uneven, even) = (line.uneven.median * 1e6, line.even.median * 1e6);
        let (batch, heads, tokens, longest) = (line.batch, line.heads, line.tokens, line.longest);
        let _ = writeln!(csv, "{batch},{heads},{tokens},{longest},{uneven:.3},{even:.3},{:.4}", line.ratio);
    }
    csv
}

fn layers_csv(numbers: &Numbers) -> String {
    let mut csv = String::from(
        "layers,batch,tokens,heads,layer_us,append_us,decode_us,steps,rows_checked,relative_l2,lse_error\n",
    );
    for line in &numbers.layers {
        let _ = writeln!(
            csv,
            "{},{},{},{},{:.3},{:.3},{:.3},{},{},{:.3e},{:.3e}",
            line.layers,
            line.batch,
            line.tokens,
            line.heads,
            line.layer.median * 1e6,
            line.append.median * 1e6,
            line.decode.median * 1e6,
            line.steps,
            line.rows_checked,
            line.error.out.relative_l2,
            line.error.lse
        );
    }
    csv
}

/// 2026-02-03T04:05:06Z
pub fn utc_now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    utc(seconds)
}

fn utc(seconds: u64) -> String {
    // Days to a date of the proleptic Gregorian calendar, in 400-year eras that begin on a 1st of March.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let day = day - (153 * shifted + 2) / 5 + 1;
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
    }
}
