//! Every group on the CUDA backend, where the machine has a Hopper device.

use conformance::backend::Backend;
use conformance::groups::{Effort, GROUPS};

#[test]
fn every_group() {
    let backend = match Backend::cuda() {
        Ok(backend) => backend,
        Err(message) => return println!("not run: {message}"),
    };
    let mut violations = Vec::new();
    for group in GROUPS {
        if let Some(report) = group.run(&backend, Effort::Quick, None) {
            println!("{}", report.line("cuda"));
            violations.extend(report.violations());
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}
