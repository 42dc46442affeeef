//! A command line that can be run here, and shown to a person to run it alone.

use std::fmt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program, its arguments, and additional environment variables.
#[derive(Clone, Debug)]
pub(crate) struct CommandLine {
    env: Vec<(String, String)>,
    is_nice: bool,
    words: Vec<String>, // Invariant: the first is the program, so there is one at least.
}

impl CommandLine {
    pub(crate) fn new(program: &str, arguments: &[&str]) -> Self {
        let words = [program].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        Self { env: Vec::new(), is_nice: false, words }
    }

    pub(crate) fn cargo(arguments: &[&str]) -> Self {
        Self::new("cargo", arguments)
    }

    /// Appends arguments.
    pub(crate) fn and(mut self, arguments: &[&str]) -> Self {
        self.words.extend(arguments.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Appends arguments.
    pub(crate) fn and_all(self, arguments: &[String]) -> Self {
        self.and(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn envs(self, env: &[(String, String)]) -> Self {
        env.iter().fold(self, |line, (name, value)| line.env(name, value))
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it in `folder` with our own input and output; the error names the command line.
    pub(crate) fn run(&self, folder: &Path) -> Result<(), String> {
        let status = self.command(folder).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{self}` failed ({status})")),
            Err(error) => Err(format!("cannot start `{self}`: {error}")),
        }
    }

    /// Lowers its scheduling priority, for work that can wait.
    pub(crate) fn nice(mut self) -> Self {
        self.is_nice = true;
        self
    }

    /// Runs it beside others: its output is returned and not mixed with theirs.
    pub(crate) fn run_captured(&self, folder: &Path) -> (String, Result<(), String>) {
        match self.command(folder).stdin(Stdio::null()).output() {
            Ok(output) => {
                let printed = [output.stdout, output.stderr].concat();
                let outcome = if output.status.success() {
                    Ok(())
                } else {
                    Err(format!("`{self}` failed ({})", output.status))
                };
                (String::from_utf8_lossy(&printed).into_owned(), outcome)
            }
            Err(error) => (String::new(), Err(format!("cannot start `{self}`: {error}"))),
        }
    }

    /// Starts it with pipes for its input and output.
    pub(crate) fn spawn_piped(&self, folder: &Path) -> Result<Child, String> {
        let mut command = self.command(folder);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        child.map_err(|error| format!("cannot start `{self}`: {error}"))
    }

    /// Returns its standard output if it succeeds; `None` if it fails or does not exist.
    pub(crate) fn answer(&self, folder: &Path) -> Option<String> {
        let output = self.command(folder).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self, folder: &Path) -> Command {
        let (program, arguments) = self.words.split_first().expect("a line has a program");
        let program = match program.as_str() {
            // The cargo that started us, so all steps use one toolchain.
            "cargo" => std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            other => other.into(),
        };
        let mut command = if self.is_nice {
            let mut nice = Command::new("nice");
            nice.arg(program);
            nice
        } else {
            Command::new(program)
        };
        command.args(arguments).current_dir(folder);
        // `cargo xtask` sets variables that describe this package. A cargo that we start must not see them: build
        // scripts that read them would run again, and everything that depends on those would be compiled again.
        for (name, _) in std::env::vars_os() {
            if name
                .to_str()
                .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
            {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

/// Quotes `word` for a shell. Our words contain no quotes and no dollar signs.
fn quoted(word: &str) -> String {
    if word.contains(char::is_whitespace) { format!("\"{word}\"") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_displayed_as_typed() {
        let line = CommandLine::cargo(&["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(line.to_string(), "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps");
    }

    #[test]
    fn a_missing_program_is_an_error_not_a_panic() {
        let line = CommandLine::new("no-such-program-as-this", &[]);
        assert!(line.run(Path::new(".")).is_err());
        assert_eq!(line.answer(Path::new(".")), None);
    }
}
