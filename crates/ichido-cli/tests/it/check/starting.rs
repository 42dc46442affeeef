//! `--init` writes a set that passes every rule, all boundary files or none, and overwrites nothing.

use std::process::Command;

use ichido_boundary::STARTING;

use super::fixture::{clean, end, fresh};

const NAMES: [&str; 5] =
    ["README.md", "adapter.json", "bff_to_gateway.json", "browser_to_bff.json", "gateway_to_adapter.json"];

#[test]
fn init_writes_files_that_satisfy_every_rule() {
    let folder = fresh();
    let out = folder.check(&["--init"]).quietly(0);
    assert_eq!(folder.names(), NAMES);
    assert!(NAMES.iter().all(|name| out.contains(name)) && out.ends_with("next: ichido check .\n"), "{out}");
    assert_eq!(folder.check(&["."]).quietly(0), clean(4));
    let names: Vec<&str> = STARTING.iter().map(|(name, _)| *name).collect();
    assert_eq!(folder.check(&names).quietly(0), clean(4));
}

#[test]
fn second_init_is_refused_and_changes_nothing() {
    let folder = fresh();
    folder.check(&["--init"]).quietly(0);
    folder.write("adapter.json", "mine");
    let err = folder.check(&["--init"]).refused();
    let text = |name: &str| err.contains(&format!("\n  {name}: this file already exists"));
    assert!(STARTING.iter().all(|(name, _)| text(name)) && !text("README.md"), "{err}");
    assert_eq!(std::fs::read_to_string(folder.path().join("adapter.json")).expect("readable"), "mine");
}

#[test]
fn existing_boundary_file_prevents_all_writes() {
    let folder = fresh();
    folder.write("bff_to_gateway.json", "mine");
    let err = folder.check(&["--init"]).refused();
    assert!(
        err.starts_with("ichido check: 1 problem\n  bff_to_gateway.json: this file already exists"),
        "{err}"
    );
    assert_eq!(folder.names(), ["bff_to_gateway.json"]);
}

#[test]
fn existing_readme_is_kept() {
    let folder = fresh();
    folder.write("README.md", "mine");
    let out = folder.check(&["--init"]).quietly(0);
    assert!(out.contains("\nkept the existing README.md\n"), "{out}");
    assert_eq!(folder.names(), NAMES);
    assert_eq!(std::fs::read_to_string(folder.path().join("README.md")).expect("readable"), "mine");
    assert_eq!(folder.check(&["."]).quietly(0), clean(4));
}

#[cfg(unix)]
#[test]
fn broken_symlink_prevents_all_writes() {
    let folder = fresh();
    std::os::unix::fs::symlink("elsewhere.json", folder.path().join("adapter.json")).expect("a link");
    let err = folder.check(&["--init"]).refused();
    assert!(err.contains("adapter.json: this file already exists"), "{err}");
    assert_eq!(folder.names(), ["adapter.json"]);
}

#[cfg(unix)]
#[test]
fn failed_write_leaves_no_files() {
    let folder = fresh();
    // Files of at most 4 blocks of 512 bytes: the first two fit, the third does not.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" check --init", env!("CARGO_BIN_EXE_ichido")]);
    let err = end(shell.current_dir(folder.path())).refused();
    assert!(err.contains("\n  gateway_to_adapter.json: cannot write it: "), "{err}");
    assert!(err.ends_with("; nothing was written\n"), "{err}");
    assert_eq!(folder.names(), [""; 0]);
}
