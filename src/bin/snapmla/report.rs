//! What a command hands back: one text for people, one JSON object for programs.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::failure::{Context, Result};

pub struct Report {
    pub text: String,
    pub json: serde_json::Value,
    /// What must hold and does not; the program then ends with status 1.
    pub broken: Option<String>,
}

impl Report {
    pub fn new(text: impl ToString, json: &impl Serialize) -> Result<Self> {
        let json = serde_json::to_value(json).context(|| "the report as JSON".into())?;
        Ok(Self { text: text.to_string(), json, broken: None })
    }

    pub fn print(&self, as_json: bool) -> Result<()> {
        let json = || serde_json::to_string_pretty(&self.json).context(|| "the report as JSON".into());
        let text = if as_json { json()? + "\n" } else { self.text.clone() };
        match std::io::stdout().lock().write_all(text.as_bytes()) {
            // The reader has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => result.context(|| "standard output".into()),
        }
    }
}
