//! `ichido completions`: writes shell completions for the command line.

use clap_complete::{Shell, generate};

use crate::exit::Exit;
use crate::out;

const AFTER_HELP: &str = "\
Examples:
  ichido completions bash > ~/.local/share/bash-completion/completions/ichido
  ichido completions zsh > \"${fpath[1]}/_ichido\"
  ichido completions fish > ~/.config/fish/completions/ichido.fish";

/// Arguments of `ichido completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the completions of a command line.
pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<(), Exit> {
    let mut script = Vec::new();
    generate(args.shell, &mut command, "ichido", &mut script);
    out::print_bytes(&script)
}
