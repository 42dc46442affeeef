//! The command line as a person uses it.

use std::process::{Command, Output};

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(words);
    command
}

fn xtask(words: &[&str]) -> Output {
    command(words).output().expect("xtask starts")
}

#[test]
fn wrong_arguments_get_the_help_text_and_code_2() {
    for words in [&[][..], &["tests"], &["tidy", "--fast"]] {
        let output = xtask(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: cargo xtask"), "{words:?}");
    }
}

#[test]
fn asking_for_help_is_not_an_error() {
    for words in [&["help"][..], &["-h"], &["test", "--help"]] {
        let output = xtask(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("Usage: cargo xtask"), "{words:?}");
    }
}

#[test]
fn without_cargo_fuzz_the_error_says_how_to_install_it() {
    // A cargo that does not exist knows no `fuzz`, whatever this machine has.
    let output = command(&["fuzz"]).env("CARGO", "no-such-cargo").output().expect("xtask starts");
    assert_eq!(output.status.code(), Some(1));
    let expected = "xtask: cargo-fuzz is missing; install it with `cargo install cargo-fuzz --locked`\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}
