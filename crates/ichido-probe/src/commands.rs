//! Runs the user's commands, which stop and start the target.
//!
//! Guarantee: a command that has begun runs to its end or its timeout, even if the run is stopped meanwhile; and after
//! `--outage` comes `--recover`, whatever happens between them. So the probe leaves no target stopped.

use std::process::Stdio;
use std::time::Duration;

use ichido_core::text::bounded;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::target::{Command, Target};

/// How much of a failed command's first line of errors is shown.
const MAX_STDERR_CHARS: usize = 200;

/// The commands of a target.
#[derive(Debug)]
pub(crate) struct Commands {
    recover: Option<String>,
    timeout: Duration,
    /// One that has not ended.
    running: Option<JoinHandle<Result<String, String>>>,
    must_recover: bool,
}

impl Commands {
    pub(crate) fn new(target: &Target, timeout: Duration) -> Self {
        let recover = target.commands.iter().find(|(command, _)| *command == Command::Recover);
        Self { recover: recover.map(|(_, line)| line.clone()), timeout, running: None, must_recover: false }
    }

    /// Runs one to its end; returns what it printed. `flag` is the option that it was given by.
    pub(crate) async fn run(
        &mut self,
        flag: &'static str,
        line: &str,
        marker: &str,
    ) -> Result<String, String> {
        // It may have stopped the store even if it fails.
        self.must_recover |= flag == Command::Outage.as_str();
        let task = execute(flag, line.to_owned(), marker.to_owned(), self.timeout);
        let task = self.running.insert(tokio::spawn(task));
        let result = task.await.unwrap_or_else(|error| Err(error.to_string()));
        self.running = None;
        self.must_recover &= flag != Command::Recover.as_str() || result.is_err();
        result
    }

    /// Waits for a command that has not ended, and recovers from an outage that has not ended.
    pub(crate) async fn finish(&mut self, marker: &str) -> Result<(), String> {
        if let Some(task) = self.running.take() {
            // Whether it did what it should is seen at the target.
            drop(task.await);
        }
        match self.recover.clone() {
            Some(line) if self.must_recover => {
                let recovered = self.run(Command::Recover.as_str(), &line, marker).await;
                // Once more would not help.
                self.must_recover = false;
                recovered.map(drop).map_err(|why| format!("{why}; the store of keys is still stopped"))
            }
            _ => Ok(()),
        }
    }
}

async fn execute(flag: &'static str, line: String, marker: String, time: Duration) -> Result<String, String> {
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", &line]).env("PROBE_MARKER", marker).stdin(Stdio::null()).kill_on_drop(true);
    // A Ctrl-C for the probe is not one for the command.
    #[cfg(unix)]
    command.process_group(0);
    // The line is not quoted: it may hold a password.
    let output = timeout(time, command.output()).await;
    let output =
        output.map_err(|_| format!("the command of --{flag} did not end within {} s", time.as_secs()))?;
    let output = output.map_err(|error| format!("the command of --{flag} did not start: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let said =
            if said.is_empty() { String::new() } else { format!(": {}", bounded(said, MAX_STDERR_CHARS)) };
        return Err(format!("the command of --{flag} failed: {}{said}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(recover: &str) -> Commands {
        let recover = Some(recover.to_owned());
        Commands { recover, timeout: Duration::from_secs(20), running: None, must_recover: false }
    }

    #[tokio::test]
    async fn after_an_outage_comes_a_recovery() {
        let mut commands = commands("exit 7");
        assert_eq!(commands.finish("m").await, Ok(()));
        assert!(commands.run("outage", "false", "m").await.is_err());
        let error = commands.finish("m").await.unwrap_err();
        assert!(error.starts_with("the command of --recover failed: exit status: 7"), "{error}");
        assert_eq!(commands.finish("m").await, Ok(()), "it is tried once");
        commands.run("outage", "true", "m").await.unwrap();
        commands.run("recover", "true", "m").await.unwrap();
        assert_eq!(commands.finish("m").await, Ok(()));
    }

    #[tokio::test]
    async fn a_failed_command_shows_its_first_line_of_errors() {
        let line = "echo >&2; echo 'no such unit: api' >&2; echo more >&2; exit 5";
        let error = commands("true").run("crash", line, "m").await.unwrap_err();
        assert_eq!(error, "the command of --crash failed: exit status: 5: no such unit: api");
    }

    #[tokio::test]
    async fn a_command_that_has_begun_ends() {
        let mut commands = commands("true");
        let file = std::env::temp_dir().join(format!("ichido-probe-{}", std::process::id()));
        let (started, ended) = (file.with_extension("started"), file.with_extension("ended"));
        // It ends only after the run was stopped.
        let line = format!(
            "touch {0}; while [ -e {0} ]; do sleep 0.01; done; touch {1}",
            started.display(),
            ended.display()
        );
        tokio::select! {
            result = commands.run("crash", &line, "m") => panic!("{result:?}"),
            () = async { while !started.exists() { tokio::task::yield_now().await } } => (),
        }
        std::fs::remove_file(&started).unwrap();
        assert_eq!(commands.finish("m").await, Ok(()));
        assert!(ended.exists());
        std::fs::remove_file(&ended).unwrap();
    }
}
