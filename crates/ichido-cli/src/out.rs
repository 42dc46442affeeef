//! Standard output, written the same way by every command.
//!
//! A reader that closes the pipe early (`ichido dead list | head -3`) is not an error: the rest is not wanted.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use clap::ColorChoice;
use ichido_core::text::table::{Column, View};
use ichido_http::clock;

use crate::beside;
use crate::exit::Exit;

/// The width of a terminal that does not report it.
const USUAL_WIDTH: usize = 80;

/// How results are shown. These flags are the same for every command.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ViewArgs {
    /// When to use colours; `NO_COLOR` switches auto off
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
    /// Show whole ids and texts, and exact times
    #[arg(long, global = true)]
    wide: bool,
}

static VIEW: OnceLock<ViewArgs> = OnceLock::new();

/// Applies the flags to everything that is printed from now on.
pub(crate) fn set_view(args: ViewArgs) {
    // It is called once, before any command.
    _ = VIEW.set(args);
}

/// Returns how results are shown on standard output.
pub(crate) fn view() -> View {
    let ViewArgs { color, wide } =
        VIEW.get().copied().unwrap_or(ViewArgs { color: ColorChoice::Never, wide: false });
    let is_terminal = io::stdout().is_terminal();
    let size = || console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    View {
        width: is_terminal.then(|| size().unwrap_or(USUAL_WIDTH)),
        wide,
        colours: has_colours(color, is_terminal, std::env::var_os("TERM"), std::env::var_os("NO_COLOR")),
        now: clock::now(),
    }
}

/// Decides whether to use colours. A flag wins over the environment, where an empty variable is not set.
fn has_colours(
    choice: ColorChoice,
    is_terminal: bool,
    term: Option<OsString>,
    no_color: Option<OsString>,
) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_dumb = term.is_none_or(|term| term.is_empty() || term == "dumb");
            is_terminal && no_color.is_none_or(|value| value.is_empty()) && !is_dumb
        }
    }
}

/// Prints a table.
pub(crate) fn print_table<const N: usize>(
    columns: [Column; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), Exit> {
    print(&view().table(columns, rows))
}

/// Writes all bytes, unless the reader has gone away.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints bytes unchanged.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Exit> {
    write(bytes).map_err(|error| Exit::Failed(format!("cannot write to standard output: {error}")))
}

/// Prints text without adding a line break.
pub(crate) fn print(text: &str) -> Result<(), Exit> {
    print_bytes(text.as_bytes())
}

/// Prints a line.
pub(crate) fn print_line(text: impl Display) -> Result<(), Exit> {
    print(&format!("{text}\n"))
}

/// Prints a line: JSON for programs, or text for people.
pub(crate) fn print_either(is_json: bool, json: impl Display, text: impl Display) -> Result<(), Exit> {
    if is_json { print_line(json) } else { print_line(text) }
}

/// Prints text to standard error. Failing to write it does not stop the command.
pub(crate) fn eprint(text: &str) {
    _ = beside::write(|| io::stderr().write_all(text.as_bytes()));
}

/// Asks the person at the terminal to confirm what would be done. Without a terminal, `--yes` is required.
pub(crate) fn confirm(word: &str, what: &str) -> Result<(), Exit> {
    if ask(word, what)? { Ok(()) } else { Err(Exit::Failed("nothing was done".to_owned())) }
}

/// Asks the same with a word to type, and returns whether they did.
pub(crate) fn ask(word: &str, what: &str) -> Result<bool, Exit> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Err(Exit::invalid("--yes", format!("{what}; confirm with --yes")));
    }
    eprint(&format!("{what}\ntype {word} to continue: "));
    let mut answer = String::new();
    Ok(stdin.lock().read_line(&mut answer).is_ok() && answer.trim() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_unless_a_flag_decides() {
        let at = |choice, is_terminal, term: &str, no_color: &str| {
            has_colours(choice, is_terminal, Some(term.into()), Some(no_color.into()))
        };
        assert!(at(ColorChoice::Auto, true, "xterm", ""), "an empty variable is not set");
        assert!(has_colours(ColorChoice::Auto, true, Some("xterm".into()), None));
        assert!(!at(ColorChoice::Auto, true, "xterm", "1"));
        assert!(!at(ColorChoice::Auto, true, "dumb", "") && !at(ColorChoice::Auto, true, "", ""));
        assert!(!at(ColorChoice::Auto, false, "xterm", ""), "not in a pipe");
        assert!(at(ColorChoice::Always, false, "", "1") && !at(ColorChoice::Never, true, "xterm", ""));
    }
}
