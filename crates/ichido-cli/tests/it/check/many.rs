//! Many files, and a reader that closes the pipe early.

use std::io::Read as _;
use std::process::Stdio;

use ichido_boundary::STARTING;
use serde_json::Value;

use super::fixture::{CheckFolder, clean, fresh, judged};

/// 250 hop chains of four files.
const CHAINS: usize = 250;

/// Creates a thousand files in one folder, of which all but four are redundant.
fn flat() -> CheckFolder {
    let folder = fresh();
    for chain in 0..CHAINS {
        for (name, text) in STARTING {
            folder.write(&format!("{chain}.{name}"), text);
        }
    }
    folder
}

#[test]
fn each_folder_is_its_own_hop_chain() {
    let folder = fresh();
    for chain in 0..CHAINS {
        for (name, text) in STARTING {
            folder.write(&format!("{chain}/{name}"), text);
        }
    }
    let chains: Vec<String> = (0..CHAINS).map(|chain| chain.to_string()).collect();
    let chains: Vec<&str> = chains.iter().map(String::as_str).collect();
    assert_eq!(folder.check(&chains).quietly(0), clean(1000));
    // One file is broken, and distinguished from the others.
    folder.put("7/bff_to_gateway.json", "/http/retry/retry_on_status", "[500]");
    let out = folder.check(&chains).quietly(1);
    assert!(
        out.starts_with("error ICH-B022: ") && out.contains("\n  where: 7/bff_to_gateway.json:"),
        "{out}"
    );
    assert!(out.ends_with(&format!("\n{}: 1 error, 0 warnings\n", judged(1000))), "{out}");
}

#[test]
fn folder_of_a_thousand_files_is_checked() {
    let out = flat().check(&["--format", "json", "."]).quietly(1);
    let report: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(report["files"], 1000);
    let findings = report["findings"].as_array().expect("a list");
    assert!(findings.iter().all(|finding| finding["rule"] == "ICH-B074"), "one file for each boundary");
    assert_eq!(findings.len(), 996);
}

#[test]
fn too_many_files_are_refused() {
    let folder = fresh();
    let err = folder.check(&vec!["a.json"; 10_001]).refused();
    assert!(err.contains("10001 files are too many; pass at most 10000 at once"), "{err}");
}

#[test]
fn closed_output_pipe_is_not_a_failure() {
    let folder = flat();
    let mut command = folder.command(&["--format", "json", "."]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut out = child.stdout.take().expect("piped");
    // The report is longer than a pipe's buffer, so the rest has no reader.
    out.read_exact(&mut [0; 10]).expect("it begins");
    drop(out);
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    assert_eq!((child.wait().expect("it ends").code(), err.as_str()), (Some(1), ""));
}
