//! The command line as a person meets it.

use std::process::{Command, Output};

fn xtask(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(words).output().expect("xtask starts")
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
