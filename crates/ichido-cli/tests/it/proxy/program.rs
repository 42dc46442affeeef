//! The binary under test as a process that ends when dropped.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

/// A running `ichido proxy`.
pub(crate) struct ProxyProcess {
    /// `None` after waiting for it.
    child: Option<Child>,
    pub(crate) address: SocketAddr,
    /// Where it serves health and metrics.
    pub(crate) admin: SocketAddr,
    /// Collects its standard error, if a test reads it.
    log: Option<JoinHandle<String>>,
}

impl ProxyProcess {
    /// Starts a proxy on a free loopback port, and waits until it listens.
    pub(crate) fn start(role: &str, upstream: SocketAddr, flags: &[&str]) -> Self {
        Self::spawn("127.0.0.1:0", role, &format!("http://{upstream}"), flags, &[], Stdio::inherit())
    }

    /// Starts a proxy for an upstream with a URL of its own.
    pub(crate) fn start_for(role: &str, upstream: &str, flags: &[&str]) -> Self {
        Self::spawn("127.0.0.1:0", role, upstream, flags, &[], Stdio::inherit())
    }

    /// Starts a proxy with environment variables.
    pub(crate) fn start_with_env(
        role: &str,
        upstream: SocketAddr,
        flags: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        Self::spawn("127.0.0.1:0", role, &format!("http://{upstream}"), flags, env, Stdio::inherit())
    }

    /// Starts a proxy on a given address.
    pub(crate) fn start_on(listen: SocketAddr, role: &str, upstream: SocketAddr, flags: &[&str]) -> Self {
        Self::spawn(&listen.to_string(), role, &format!("http://{upstream}"), flags, &[], Stdio::inherit())
    }

    /// Starts a proxy whose standard error can be read at the end.
    pub(crate) fn start_logged(role: &str, upstream: SocketAddr, flags: &[&str]) -> Self {
        let upstream = format!("http://{upstream}");
        let mut proxy = Self::spawn("127.0.0.1:0", role, &upstream, flags, &[], Stdio::piped());
        let mut err = proxy.child.as_mut().and_then(|child| child.stderr.take()).expect("it is piped");
        proxy.log = Some(std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).expect("text");
            text
        }));
        proxy
    }

    fn spawn(
        listen: &str,
        role: &str,
        upstream: &str,
        flags: &[&str],
        env: &[(&str, &str)],
        err: Stdio,
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
        command.current_dir("/").args(["proxy", "--role", role, "--upstream", upstream, "--listen", listen]);
        command.args(["--admin", "127.0.0.1:0"]).args(flags).envs(env.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(err).spawn().expect("the binary starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it says something");
        let after = |word: &str| line.split(word).nth(1)?.split_whitespace().next()?.parse().ok();
        let (Some(address), Some(admin)) = (after("listening on http://"), after("metrics at http://"))
        else {
            panic!("no addresses in {line:?}")
        };
        Self { child: Some(child), address, admin, log: None }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.as_ref().expect("it runs").id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    /// Returns its standard error after it has ended.
    pub(crate) fn log(&mut self) -> String {
        self.log.take().expect("it was started with a log").join().expect("it is read")
    }

    /// Waits for its end without blocking the test's own services.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it was not waited for yet");
        let ended = tokio::task::spawn_blocking(move || child.wait()).await;
        ended.expect("it does not panic").expect("it is our child")
    }

    /// Kills it at once.
    pub(crate) async fn kill(mut self) {
        self.child.as_mut().expect("it runs").kill().expect("it is our child");
        self.wait().await;
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may already have ended.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Runs the binary to its end; returns exit code, standard output and standard error.
pub(crate) fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    let child =
        command.current_dir("/").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the binary starts");
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    (child.wait().expect("it ends").code(), out, err)
}
