//! The reader of the output may go away early: `ichido dead list | head -3`.

use std::process::{Command, Output, Stdio};

use super::fixture::StoreFixture;

/// Runs a command whose standard output nobody reads.
fn unread(fixture: &StoreFixture, mut command: Command) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    command.current_dir(fixture.folder()).env("ICHIDO_STORE", &fixture.url).stdin(Stdio::null());
    command
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
        .wait_with_output()
        .expect("it ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_output_pipe_ends_every_command_quietly() {
    let fixture = StoreFixture::on_sqlite().await;
    let id = fixture.dead("orders", 1).await[0].to_string();
    for arguments in [
        &["dead", "list"][..],
        &["dead", "list", "--json"],
        &["dead", "show", &id],
        &["dead", "show", &id, "--json"],
        &["dead", "show", &id, "--request"],
        &["dead", "operations"],
        &["dead", "requeue", "--all", "--dry-run"],
        &["dead", "discard", &id, "--reason", "test data"],
        &["audit", "seal"],
        &["audit", "head"],
        &["audit", "verify"],
        &["keys", "unknown"],
        &["config", "check"],
        &["config", "init", "-"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
        command.args(arguments);
        let left = unread(&fixture, command);
        let err = String::from_utf8(left.stderr).expect("text");
        assert_eq!((left.status.code(), &*err), (Some(0), ""), "{arguments:?}");
    }
}

/// Nobody watches, and everything is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_operation_continues_without_readers() {
    let fixture = StoreFixture::on_sqlite().await;
    let ids = fixture.dead("orders", 3).await;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = fixture.command(&["requeue", "--all", "--yes"]);
    let status = command.stdout(writer.try_clone().expect("a pipe")).stderr(writer).status();
    assert_eq!(status.expect("it runs").code(), Some(0));
    for id in ids {
        assert_eq!(fixture.status(id).await, "queued");
    }
}
