//! Run with `cargo test`; numaproof must be installed (requirements-conformance.txt).

use std::process::Command;

#[test]
fn numaproof_understands_it() {
    let adapter = env!("CARGO_BIN_EXE_adapter");
    let doctor = Command::new("numaproof").args(["check", "--implementation", adapter, "--select", "example-*", "--machine", "laptop-4c8t"]).status();
    assert!(doctor.expect("numaproof is installed").success());
}
