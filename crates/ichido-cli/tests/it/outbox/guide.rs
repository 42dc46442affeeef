//! Runs the commands of the worker guide as written, and compares their output.

use std::process::{Command, Stdio};

use ichido_core::lifecycle::StateName;
use ichido_store::Store;

use super::database::POLL_EVERY;
use super::program::WorkerProcess;
use crate::folder::{self, TempFolder};
use crate::mock_broker::broker::MockBroker;

const GUIDE: &str = include_str!("../../../../../docs/guides/run-a-worker.md");

/// Returns the blocks of one kind, in order.
fn blocks(kind: &str) -> Vec<&'static str> {
    let fence = format!("```{kind}\n");
    let parts = GUIDE.split(fence.as_str()).skip(1);
    parts.map(|block| block.split("\n```").next().expect("it ends")).collect()
}

/// Runs a block in a shell; returns its output.
fn shell(folder: &TempFolder, block: &str) -> String {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_ichido"));
    let path = format!(
        "{}:{}",
        binary.parent().expect("a folder").display(),
        std::env::var("PATH").expect("a path")
    );
    let mut command = Command::new("sh");
    command.args(["-ec", block]).current_dir(folder.path()).env("PATH", path).env_remove("ICHIDO_STORE");
    let ended = command.stderr(Stdio::inherit()).output().expect("a shell");
    assert!(ended.status.success(), "{block}");
    String::from_utf8(ended.stdout).expect("text")
}

/// Replaces every id, so two runs can be compared.
fn without_ids(text: &str) -> String {
    let word =
        |word: &str| if word.parse::<uuid::Uuid>().is_ok() { "ID".to_owned() } else { word.to_owned() };
    text.trim()
        .lines()
        .map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_guide_commands_work() {
    let folder = folder::fresh();
    let [init, mock, worker, send, again, look, count] = &blocks("sh")[..] else { panic!("seven commands") };
    let [made, works, new, same, effects, counted] = &blocks("text")[..] else { panic!("six answers") };
    assert_eq!(shell(&folder, init).trim(), *made);

    // The test uses free ports, where the guide uses the default ones.
    assert_eq!(*mock, "ichido mock-broker");
    let mock = MockBroker::start(&[]);
    let file = folder.path().join("ichido.toml");
    let usual = "#url = \"http://127.0.0.1:8090/orders\"";
    let config = std::fs::read_to_string(&file).expect("it was written");
    assert!(config.contains(usual));
    folder.write("ichido.toml", &config.replace(usual, &format!("url = \"http://{}/orders\"", mock.address)));
    assert_eq!(*worker, "ichido worker --metrics 127.0.0.1:9464");
    let worker = WorkerProcess::start(folder.path(), &[]);
    let metrics = worker.startup_output[0].rsplit('/').nth(1).expect("an address").to_owned();
    let printed = worker.startup_output.join("\n").replace(&metrics, "127.0.0.1:9464");
    let printed = printed.replace(&mock.address.to_string(), "127.0.0.1:8090");
    assert_eq!(without_ids(&printed), without_ids(works));

    assert_eq!(without_ids(&shell(&folder, send)), without_ids(new));
    assert_eq!(without_ids(&shell(&folder, again)), without_ids(same));
    let store = Store::open(&format!("sqlite:{}", folder.path().join("ichido.db").display()), 2)
        .await
        .expect("it opens");
    while !store
        .queues()
        .counts()
        .await
        .expect("an answer")
        .iter()
        .any(|count| count.state == StateName::Sent && count.count == 1)
    {
        tokio::time::sleep(POLL_EVERY).await;
    }
    assert_eq!(*look, "curl -s http://127.0.0.1:8090/mock/effects");
    let shown: serde_json::Value = serde_json::from_str(effects).expect("JSON");
    let seen = mock.effects().await;
    for member in ["calls", "effects", "max_effects"] {
        assert_eq!(seen[member], shown[member], "{member}");
    }
    assert_eq!(*count, "curl -s http://127.0.0.1:9464/metrics | grep '^outbox.*success'");
    let page = worker.metrics().await;
    let fits = |line: &&str| line.starts_with("outbox") && line.contains("success");
    let lines: Vec<&str> = page.lines().filter(fits).collect();
    assert_eq!(lines.len(), counted.lines().count(), "{lines:?}");
    for line in counted.lines() {
        assert!(lines.contains(&line), "{line}\n{page}");
    }
}
