//! What was tried and how it went: lines for people, JSON for everything else.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::backend::Backend;
use crate::check::Measured;

/// What a case measured. A group's line shows the largest of each.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Metrics(pub BTreeMap<&'static str, f64>);

impl Metrics {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn one(name: &'static str, value: f64) -> Self {
        Self::default().with(name, value)
    }

    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        self.0.insert(name, value);
        self
    }

    /// The larger of each.
    pub fn worst(mut self, other: &Metrics) -> Self {
        for (name, value) in &other.0 {
            let kept = self.0.entry(name).or_insert(*value);
            *kept = kept.max(*value);
        }
        self
    }
}

impl From<Measured> for Metrics {
    fn from(m: Measured) -> Self {
        Self::one("call L2", m.call).with("row L2", m.row).with("dLSE", m.lse).with("dLSE/limit", m.lse_of_limit)
    }
}

#[derive(Debug, Serialize)]
pub struct CaseReport {
    pub name: String,
    pub seconds: f64,
    pub measured: Metrics,
    pub violation: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct GroupReport {
    pub name: &'static str,
    pub about: &'static str,
    pub seconds: f64,
    pub worst: Metrics,
    pub cases: Vec<CaseReport>,
}

impl GroupReport {
    pub fn new(name: &'static str, about: &'static str, seconds: f64, cases: Vec<CaseReport>) -> Self {
        let worst = cases.iter().fold(Metrics::none(), |worst, case| worst.worst(&case.measured));
        Self { name, about, seconds, worst, cases }
    }

    pub fn violations(&self) -> Vec<String> {
        let told =
            |case: &CaseReport| case.violation.as_ref().map(|text| format!("{}/{}: {text}", self.name, case.name));
        self.cases.iter().filter_map(told).collect()
    }

    pub fn line(&self, backend: &str) -> String {
        let bad = self.violations().len();
        let verdict = if bad == 0 { "ok".to_string() } else { format!("{bad} VIOLATIONS") };
        let numbers: Vec<String> = self.worst.0.iter().map(|(name, value)| format!("{name} {value:.2e}")).collect();
        let (name, count, seconds) = (self.name, self.cases.len(), self.seconds);
        format!("{backend:<4} {name:<14} {count:>4} cases {seconds:>6.1} s  {verdict:<12} {}", numbers.join(", "))
    }
}

#[derive(Debug, Serialize)]
pub struct BackendReport {
    pub backend: &'static str,
    pub name: String,
    pub card: Option<String>,
    pub driver: Option<String>,
    pub seconds: f64,
    pub violations: usize,
    pub groups: Vec<GroupReport>,
}

impl BackendReport {
    pub fn new(backend: &Backend, seconds: f64, groups: Vec<GroupReport>) -> Self {
        let cuda = backend.cuda.as_ref();
        Self {
            backend: backend.kind.name(),
            name: backend.name.clone(),
            card: cuda.map(|cuda| cuda.card.clone()),
            driver: cuda.map(|cuda| cuda.driver.clone()),
            seconds,
            violations: groups.iter().map(|group| group.violations().len()).sum(),
            groups,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub date: String,
    pub command: String,
    pub abi_version: u32,
    pub backends: Vec<BackendReport>,
}

impl Report {
    pub fn new(backends: Vec<BackendReport>) -> Self {
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        Self { date: now(), command, abi_version: snapmla::abi::types::SNAPMLA_ABI_VERSION, backends }
    }
}

/// The time, in UTC, as ISO 8601 has it.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |past| past.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    let second = seconds % 86_400;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of a day since 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_454), (2026, 1, 1));
    }
}
