//! Shell completions of the command line.

use std::process::Command;

fn script(shell: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ichido"))
        .current_dir("/")
        .args(["completions", shell])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_shell_gets_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = script(shell);
        for command in ["serve", "messages", "requeue", "queues", "dead", "completions"] {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
    }
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let script = script("bash");
    for (words, completed) in [
        (&["ichido", "mess"][..], "messages"),
        (&["ichido", "messages", "req"], "request requeue"),
        (&["ichido", "queues", "pause", "--serv"], "--server"),
        (&["ichido", "messages", "list", "--state", "pa"], "parked"),
    ] {
        let [.., before, last] = words else { panic!("two at least") };
        let at = words.len() - 1;
        let ask = format!(
            "{script}\nCOMP_WORDS=({})\nCOMP_CWORD={at}\n_ichido ichido '{last}' '{before}'\necho \"${{COMPREPLY[*]}}\"\n",
            words.join(" ")
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.trim(), completed, "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
