//! Runs the commands of the offline queue guide as written, without the server and then with it.

use std::path::Path;
use std::process::Command;

use crate::folder::{self, TempFolder};
use crate::send::program::{SendOutput, run};
use crate::send::server::FakeServer;

const GUIDE: &str = include_str!("../../../../../docs/guides/offline-queue.md");
const ADDRESS: &str = "http://127.0.0.1:4180";

/// Returns the lines of the shell blocks, in order.
fn commands() -> Vec<&'static str> {
    let blocks = GUIDE.split("```sh\n").skip(1);
    blocks.flat_map(|block| block.split("\n```").next().expect("it ends").lines()).collect()
}

fn shell(folder: &TempFolder, command: &str, server: &str) -> SendOutput {
    let binary = Path::new(env!("CARGO_BIN_EXE_ichido")).parent().expect("it is in a folder").to_owned();
    let others = std::env::var_os("PATH").expect("there is a path");
    let path = std::env::join_paths([binary].into_iter().chain(std::env::split_paths(&others))).unwrap();
    let mut shell = Command::new("sh");
    for name in ["SERVER", "TOKEN", "STORE", "CONFIG", "LOG"] {
        shell.env_remove(format!("ICHIDO_{name}"));
    }
    shell.args(["-c", &command.replace(ADDRESS, server)]).current_dir(folder.path()).env("PATH", path);
    run(shell, "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offline_queue_guide_commands_work() {
    let [queue, drain, list, list_failed, retry] = commands()[..] else { panic!("{:#?}", commands()) };
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    let queued = shell(&folder, queue, &format!("http://{port}"));
    assert_eq!((queued.code, queued.out.as_str()), (Some(3), "queued\n"), "{queued:?}");
    let waits = shell(&folder, list, "");
    assert!(waits.out.contains("waiting") && waits.out.contains("order-1"), "{waits:?}");
    // The server is back at the same address.
    let listener = tokio::net::TcpListener::bind(port).await.unwrap();
    let to = server.address;
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let mut to = tokio::net::TcpStream::connect(to).await.unwrap();
            tokio::spawn(async move { drop(tokio::io::copy_bidirectional(&mut from, &mut to).await) });
        }
    });
    let sent = shell(&folder, drain, &format!("http://{port}"));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.out.starts_with("new id-of-7 entry 1"), "{sent:?}");
    assert_eq!(server.message("order-1").unwrap().1, 1);
    for command in [list_failed, retry] {
        assert_eq!(shell(&folder, command, "").code, Some(0), "{command}");
    }
}
