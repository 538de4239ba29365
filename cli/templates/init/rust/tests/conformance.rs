//! Run with `cargo test`; numaproof must be installed (requirements-conformance.txt).

use std::process::Command;

#[test]
fn adapter_speaks_the_protocol() {
    let adapter = env!("CARGO_BIN_EXE_adapter");
    let doctor = Command::new("numaproof").args(["doctor", adapter]).status();
    assert!(doctor.expect("numaproof is installed").success());
}
