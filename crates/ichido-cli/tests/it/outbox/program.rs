//! The binary under test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Returns the binary in a folder, with a clean environment.
pub(crate) fn ichido(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    command
        .current_dir(folder)
        .env_remove("ICHIDO_STORE")
        .env_remove("ICHIDO_CONFIG")
        .env_remove("ICHIDO_LOG");
    command
}

/// Runs it to its end, with standard input.
pub(crate) fn run(folder: &Path, arguments: &[&str], input: &str) -> CommandOutput {
    let mut command = ichido(folder);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    // It may end without reading.
    drop(child.stdin.take().expect("piped").write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A running `ichido worker`; it ends when dropped.
pub(crate) struct WorkerProcess {
    /// `None` after waiting for it.
    child: Option<Child>,
    /// Its output while starting.
    pub(crate) startup_output: Vec<String>,
    /// Its output after that.
    later_output: Option<JoinHandle<Vec<String>>>,
    log: Option<JoinHandle<String>>,
}

impl WorkerProcess {
    /// Starts a worker in a folder with its `ichido.toml` and a metrics page, and waits until it is running.
    pub(crate) fn start(folder: &Path, flags: &[&str]) -> Self {
        let mut command = ichido(folder);
        command.args(["worker", "--metrics", "127.0.0.1:0"]).args(flags);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut err = child.stderr.take().expect("piped");
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).expect("text");
            text
        });
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut worker =
            Self { child: Some(child), startup_output: Vec::new(), later_output: None, log: Some(log) };
        while let Some(line) = lines.next() {
            worker.startup_output.push(line.expect("text"));
            if worker.startup_output.last().is_some_and(|line| line.contains(" works on ")) {
                worker.later_output =
                    Some(std::thread::spawn(move || lines.map(|line| line.expect("text")).collect()));
                return worker;
            }
        }
        panic!("it does not work: {}", worker.log.take().expect("it is read").join().expect("text"));
    }

    fn pid(&self) -> String {
        self.child.as_ref().expect("it runs").id().to_string()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Stops it, and waits until none of its threads runs: the signal alone takes effect later.
    pub(crate) async fn stop(&self) {
        self.signal("STOP");
        let tasks = format!("/proc/{}/task", self.pid());
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.expect("a task").path().join("stat")).expect("its state");
            stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
        };
        while !std::fs::read_dir(&tasks).expect("its tasks").all(is_stopped) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Returns its id in the audit trail.
    pub(crate) fn id(&self) -> uuid::Uuid {
        let line = self.startup_output.last().expect("it said something");
        line.split(' ').find_map(|word| word.parse().ok()).expect("an id")
    }

    /// Returns its metrics page.
    pub(crate) async fn metrics(&self) -> String {
        let line =
            self.startup_output.iter().find_map(|line| line.split_once("http://")).expect("an address").1;
        let address = line.split('/').next().expect("an address");
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it takes a request");
        let mut page = String::new();
        stream.read_to_string(&mut page).await.expect("it answers");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        page
    }

    /// Returns the value of a metric with these labels, in any order.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let page = self.metrics().await;
        let fits = |line: &&str| {
            let has = |(label, value): &(&str, &str)| line.contains(&format!("{label}=\"{value}\""));
            line.starts_with(&format!("{name}{{")) && labels.iter().all(has)
        };
        let line = page.lines().find(fits)?;
        line.rsplit(' ').next().and_then(|number| number.trim().parse().ok())
    }

    /// Waits for its end without blocking the test; returns exit code and log.
    pub(crate) async fn wait(&mut self) -> (Option<i32>, String) {
        let mut child = self.child.take().expect("it was not waited for yet");
        let log = self.log.take().expect("it was not read yet");
        let ended = tokio::task::spawn_blocking(move || {
            let status = child.wait().expect("it is our child");
            (status.code(), log.join().expect("it is read"))
        });
        ended.await.expect("it does not panic")
    }

    /// Returns its output after starting; call it after waiting for the end.
    pub(crate) fn final_output(&mut self) -> Vec<String> {
        self.later_output.take().expect("it was not read yet").join().expect("it is read")
    }

    /// Kills it at once.
    pub(crate) async fn kill(mut self) {
        self.signal("KILL");
        self.wait().await;
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may already have ended.
            drop(child.kill());
            drop(child.wait());
        }
    }
}
