//! The binary `fake-llm`: the server as a process.
//!
//! It prints one line, `fake-llm listens on 127.0.0.1:PORT`, and exits on SIGTERM, on SIGINT, or, with
//! `--until-stdin-closes`, when its input closes.

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use fake_llm::Script;
use tokio::io::AsyncReadExt;

/// Fake Bedrock, OpenAI and Anthropic over plain HTTP, for tests.
#[derive(Parser)]
struct Arguments {
    /// Listen address; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Initial script, a JSON file.
    #[arg(long)]
    script: Option<PathBuf>,
    /// Exit when the input closes, so a killed test leaves nothing behind.
    #[arg(long)]
    until_stdin_closes: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fake-llm: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let script = arguments.script.as_deref().map_or_else(|| Ok(Script::default()), read)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        // Before the line is printed: a reader of it may send a signal at once.
        let end = end(arguments.until_stdin_closes)?;
        let fake = fake_llm::start_at(arguments.listen, script)
            .map_err(|error| format!("cannot listen on {}: {error}", arguments.listen))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "fake-llm listens on {}", fake.address())?;
        out.flush()?;
        end.await?;
        Ok(())
    });
    // Do not wait for the thread that reads the input, which may never end.
    runtime.shutdown_background();
    served
}

fn read(path: &Path) -> Result<Script, String> {
    let explain = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let json = std::fs::read(path).map_err(|error| explain(&error))?;
    Script::parse(&json).map_err(|error| explain(&error))
}

/// Waits for what ends the process.
#[cfg(unix)]
fn end(until_stdin_closes: bool) -> std::io::Result<impl Future<Output = std::io::Result<()>>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
            closed = stdin_closed(), if until_stdin_closes => closed,
        }
    })
}

/// Waits for what ends the process.
#[cfg(not(unix))]
fn end(until_stdin_closes: bool) -> std::io::Result<impl Future<Output = std::io::Result<()>>> {
    Ok(async move {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            closed = stdin_closed(), if until_stdin_closes => closed,
        }
    })
}

async fn stdin_closed() -> std::io::Result<()> {
    let mut input = tokio::io::stdin();
    while 0 < input.read(&mut [0; 64]).await? {}
    Ok(())
}
