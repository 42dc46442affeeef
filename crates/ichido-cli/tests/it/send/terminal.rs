//! The progress bar, only for a person at a terminal.

use std::process::{Command, Stdio};

use super::program::run;
use super::server::FakeServer;
use crate::folder;

const LINES: &str = "{\"key\":\"k1\",\"body\":1}\n{\"key\":\"k2\",\"body\":2}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminal_shows_a_progress_bar_without_colours() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    folder.write("lines", LINES);
    let binary = env!("CARGO_BIN_EXE_ichido");
    let line = format!("{binary} send orders --ndjson lines --server http://{}", server.address);
    // Provides a terminal, and records everything that appears there.
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "typescript"]).current_dir(folder.path());
    script.env("TERM", "xterm").env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null());
    assert_eq!(script.status().expect("script is there, as part of every Linux").code(), Some(0));
    let shown = std::fs::read_to_string(folder.path().join("typescript")).unwrap();
    assert!(shown.contains("100% 2 new, 0 same, 0 refused"), "{shown:?}");
    for result in ["new id-of-2 line 1\r\n", "new id-of-2 line 2\r\n"] {
        assert!(shown.contains(result), "{shown:?}");
    }
    assert!(!shown.contains("\u{1b}[3") && !shown.contains("\u{1b}[1"), "no colours: {shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipe_shows_no_progress_bar() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let sent = run(server.send(folder.path(), &["--ndjson", "-"]), LINES);
    assert_eq!(sent.out, "new id-of-2 line 1\nnew id-of-2 line 2\n");
    assert_eq!(sent.err, "ichido: 2 new, 0 same, 0 refused\n");
}
