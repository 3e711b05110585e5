//! Text tables for a terminal.

/// Name and value, one a line.
#[derive(Default)]
pub struct Facts(Vec<(&'static str, String)>);

impl Facts {
    pub fn add(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, value.into()));
    }
}

impl std::fmt::Display for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.0 {
            writeln!(f, "{name:width$}  {value}")?;
        }
        Ok(())
    }
}

/// Columns under a heading, right-aligned.
pub struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|name| name.to_string()).collect()] }
    }

    pub fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl std::fmt::Display for Columns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
            writeln!(f, "{}", cells.join("  "))?;
        }
        Ok(())
    }
}

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration with three significant digits and a fitting unit.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{} s", significant(s)),
        s if s >= 1e-3 => format!("{} ms", significant(s * 1e3)),
        s => format!("{} us", significant(s * 1e6)),
    }
}

/// A byte rate in GB/s or TB/s.
pub fn rate(bytes_per_s: f64) -> String {
    match bytes_per_s {
        r if r >= 1e12 => format!("{} TB/s", significant(r * 1e-12)),
        r => format!("{} GB/s", significant(r * 1e-9)),
    }
}

/// An operation rate in GFLOP/s or TFLOP/s.
pub fn flop_rate(flops: f64) -> String {
    match flops {
        r if r >= 1e12 => format!("{} TFLOP/s", significant(r * 1e-12)),
        r => format!("{} GFLOP/s", significant(r * 1e-9)),
    }
}

pub fn significant(x: f64) -> String {
    match x {
        x if x >= 100.0 => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x => format!("{x:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!((grouped(7), grouped(1234567)), ("7".into(), "1,234,567".into()));
        assert_eq!(duration(0.0321), "32.1 ms");
        assert_eq!(rate(4.53e12), "4.53 TB/s");
    }

    #[test]
    fn columns_line_up() {
        let mut columns = Columns::new(&["a", "bb"]);
        columns.add(vec!["123".into(), "4".into()]);
        assert_eq!(columns.to_string(), "  a  bb\n123   4\n");
    }
}
