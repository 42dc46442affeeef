//! Each unreadable file gets one clear error, with line and column if known, and code 2.

use std::fs::File;
use std::process::Command;

use super::fixture::{clean, fresh, starting};

#[test]
fn invalid_boundary_file_is_refused_with_its_location() {
    let folder = fresh();
    let deep = "{\"boundary\":\"adapter\",\"http\":".to_owned() + &"[".repeat(10_000);
    let cases: [(&[u8], &str); 9] = [
        (b"", "b.json:1:1: the text is empty"),
        (b"boundary: adapter", "b.json:1:1: expected a value"),
        (b"{\n \"boundary\": \"adapter\",\n}", "b.json:3:1: expected a member name in double quotes"),
        (b"{\"boundary\":\n\"\xff\"}", "b.json:2:2: the text is not valid UTF-8"),
        (
            b"{\"boundary\":\"adapter\",\n\"boundary\":\"adapter\"}",
            "b.json:2:1: this member name repeats an earlier one",
        ),
        (b"{\"boundary\":\"adapter\",\n\"http\":3}", "b.json:2:8: /http: expected an object, found a number"),
        (b"{\"http\":{}}", "b.json:1:1: the member `boundary` is missing"),
        (b"[]", "b.json:1:1: the file: expected an object"),
        (deep.as_bytes(), "more than 64 nested arrays and objects"),
    ];
    for (text, what) in cases {
        folder.write("b.json", text);
        let err = folder.check(&["b.json"]).refused();
        assert!(err.starts_with("ichido check: 1 problem\n  b.json:") && err.contains(what), "{what}: {err}");
    }
}

#[test]
fn a_file_of_50_megabytes_is_refused() {
    let folder = fresh();
    let file = File::create(folder.path().join("b.json")).expect("it can be made");
    file.set_len(50_000_000).expect("it can be long");
    let err = folder.check(&["b.json"]).refused();
    assert!(err.contains("the file is larger than 1048576 bytes"), "{err}");
}

#[test]
fn all_unreadable_files_are_reported_together_without_findings() {
    let folder = starting();
    folder.put("bff_to_gateway.json", "/http/idempotency/mode", "\"disabled\"");
    folder.write("z.json", "{");
    std::fs::create_dir(folder.path().join("empty")).expect("it can be made");
    let err = folder.check(&[".", "missing.json", "empty"]).refused();
    assert!(err.starts_with("ichido check: 3 problems\n"), "{err}");
    assert!(err.contains("\n  z.json:1:2: "), "{err}");
    assert!(err.contains("\n  missing.json: no such file or folder\n"), "{err}");
    assert!(err.contains("\n  empty: there is no *.json file in this folder; "), "{err}");
}

#[cfg(unix)]
#[test]
fn pipe_is_refused_without_waiting() {
    let folder = fresh();
    let made = Command::new("mkfifo").arg(folder.path().join("p.json")).status();
    assert!(made.expect("mkfifo runs").success());
    for path in ["p.json", ".", "/dev/zero"] {
        let err = folder.check(&[path]).refused();
        assert!(err.contains("this is a pipe or a device"), "{err}");
    }
}

#[cfg(unix)]
#[test]
fn symlinks_are_followed_and_broken_ones_refused() {
    let folder = starting();
    let link =
        |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name)).expect("a link");
    link("adapter.json", "again.json");
    link(".", "folder.json");
    assert_eq!(folder.check(&["."]).quietly(0), clean(4), "each file once");
    link("nowhere.json", "lost.json");
    link("ring.json", "ring.json");
    let err = folder.check(&["."]).refused();
    assert!(err.contains("\n  lost.json: no such file or folder\n"), "{err}");
    assert!(err.contains("\n  ring.json: cannot read it: "), "{err}");
}

#[cfg(unix)]
#[test]
fn non_utf8_file_name_is_shown_escaped() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = fresh();
    let name = std::ffi::OsStr::from_bytes(b"\xff\x1b[2J\n.json");
    std::fs::write(folder.path().join(name), "{}").expect("it can be written");
    let err = folder.check(&["."]).refused();
    assert!(err.contains("\n  \u{fffd}\\u{1b}[2J\\n.json:1:1: "), "{err:?}");
}

#[test]
fn folder_selects_only_its_json_files() {
    let folder = starting();
    for name in ["notes.txt", ".hidden.json", "deeper/other.json", "json"] {
        folder.write(name, "not JSON");
    }
    assert_eq!(folder.check(&["."]).quietly(0), clean(4));
    let twice = folder.check(&[".", "./adapter.json", "adapter.json"]).quietly(0);
    assert_eq!(twice, clean(4), "however often it is named");
}

#[test]
fn usage_error_is_code_2_and_help_lists_codes() {
    let folder = starting();
    assert_eq!(
        folder.check(&[]).quietly(0),
        folder.check(&["."]).quietly(0),
        "the current folder is the default"
    );
    for arguments in [
        &["--list", "--init"][..],
        &["--list", "adapter.json"],
        &["--init", "--format", "json"],
        &["--explain", "ICH-B001", "--diff"],
        &["--explain", "ICH-B001", "--allow", "ICH-B090=x"],
        &["--format", "yaml", "."],
    ] {
        let err = folder.check(arguments).refused();
        assert!(err.starts_with("error: "), "{arguments:?}: {err}");
    }
    let help = folder.check(&["--help"]).quietly(0);
    for words in ["Exit code: 0", "1 for findings, both errors and warnings", "2 for an unreadable file"] {
        assert!(help.contains(words), "{help}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_report_is_an_error() {
    let folder = starting();
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = folder.command(&["."]).stdout(full).output().expect("the binary starts");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("standard output: cannot write the report"), "{err}");
}
