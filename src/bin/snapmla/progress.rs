//! A progress bar, on a terminal only.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// Nothing is drawn when either stream is piped.
pub fn bar(steps: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() || !std::io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar:.cyan} {pos}/{len} {msg}");
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
