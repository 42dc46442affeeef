//! The shell beside a server. Only it runs PostgreSQL's programs, and it cleans up.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::ClusterError;
use super::account::Account;

/// How many lines of the server's log go into an error.
const MAX_LOG_LINES: usize = 20;

/// The watcher's program, with the folder of the binaries and the cluster's folder as arguments.
///
/// It answers once when it has created the folder, and then each request. A request is a line with a verb and a word; the
/// answer is a line with the exit status, and the program's output is in the file `answer`. Requests never overlap, so the end
/// of the pipe is never seen while a server is starting. Every program's input and output are redirected, so none holds our
/// pipes open.
///
/// - Signals are caught, not ignored: an answer to a process that died in the meantime must not end the watcher, while its
///   children must start with the default handlers.
/// - `--no-sync` skips the sync of the empty cluster only; the server itself syncs. `keep` copies those files before their first
///   start, and `clone` uses such a copy, which takes a fifteenth of the processor time of `initdb`.
/// - `kill` simulates a power failure: the server's first process is stopped, so it starts no more, while the others are
///   killed, and is killed last.
/// - A server that a test froze (`SIGSTOP`) is resumed before it is stopped, and a stuck one is killed; both only if the
///   process with that number still has our data folder as its working directory.
const WATCHER: &str = r#"
trap : HUP INT TERM PIPE
bin=$1 folder=$2 data=$2/data
mkdir -m 700 -- "$folder" || exit 1
echo 0
answered() { "$@" </dev/null >"$folder/answer" 2>&1; echo "$?"; }
control() { answered "$bin/pg_ctl" "$@" -D "$data" -l "$folder/server.log" -s -w -t 120; }
killed() {
    read -r pid <"$data/postmaster.pid" && kill -STOP "$pid" || return 1
    read -r others <"/proc/$pid/task/$pid/children"
    kill -KILL $others
    kill -KILL "$pid"
}
while read -r verb word; do
    case $verb in
        init) answered "$bin/initdb" -D "$data" -U "$word" -A trust -E UTF8 --locale=C --no-sync --no-instructions ;;
        keep) answered cp -R -p -- "$data" "$folder/$word" ;;
        clone) answered cp -R -p -- "$word" "$data" ;;
        copy) answered "$bin/pg_basebackup" -d "$word" -D "$data" -R -X stream -c fast --no-sync ;;
        start) control start -o "-p $word" ;;
        stop) control stop -m "$word" ;;
        restart) control restart -m "$word" ;;
        promote) control promote ;;
        kill) answered killed ;;
        *) echo 64 ;;
    esac
done
if [ -f "$data/postmaster.pid" ]; then
    read -r pid <"$data/postmaster.pid"
    signal() { [ "$(readlink "/proc/$pid/cwd")" = "$data" ] && kill "$1" "$pid"; }
    signal -CONT
    "$bin/pg_ctl" stop -D "$data" -m immediate -s -w -t 15 </dev/null >/dev/null 2>&1 || signal -KILL
fi
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$folder" && break
    sleep 1
done
"#;

/// The shell beside the server. When this is dropped, the shell's input ends, and it cleans up.
#[derive(Debug)]
pub(super) struct Watcher {
    shell: Child,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Watcher {
    pub(super) fn start(binaries: &Path, folder: &Path, account: Option<&Account>) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCHER, "ichido-test-postgres"])
            .args([binaries, folder])
            // Not a folder that the server's user may not enter.
            .current_dir("/")
            // Errors are recognised by their text.
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Not ours: `cargo test` waits until the last holder has closed it.
            .stderr(Stdio::null())
            // Ctrl-C ends the foreground group; the watcher has to survive it.
            .process_group(0);
        // PGDATA, PGPORT and similar variables are meant for other servers.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        Account::take(account, &mut command);
        let mut shell = command.spawn()?;
        let answers = shell.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut watcher = Self { shell, answers: BufReader::new(answers), folder: folder.to_owned() };
        match watcher.answer() {
            Ok(_) => Ok(watcher),
            Err(_) => Err(io::Error::other(format!("cannot create {}", folder.display()))),
        }
    }

    /// Starts the server on the first available port of these.
    pub(super) fn start_server(&mut self, ports: impl Iterator<Item = u16>) -> Result<u16, ClusterError> {
        let mut failed = ClusterError::NoPort;
        for port in ports {
            match self.ask("start", &port.to_string()) {
                Ok(()) => return Ok(port),
                Err(ClusterError::Program { verb, said, log }) if log.contains("Address already in use") => {
                    failed = ClusterError::Program { verb, said, log };
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed)
    }

    pub(super) fn ask(&mut self, verb: &'static str, word: &str) -> Result<(), ClusterError> {
        let status = self.exchange(verb, word).map_err(ClusterError::io("talk to the watcher"))?;
        if status == "0" {
            return Ok(());
        }
        let read = |name| std::fs::read(self.folder.join(name)).unwrap_or_default();
        Err(ClusterError::Program {
            verb,
            said: String::from_utf8_lossy(&read("answer")).trim().to_owned(),
            log: last_lines(&String::from_utf8_lossy(&read("server.log"))),
        })
    }

    fn exchange(&mut self, verb: &str, word: &str) -> io::Result<String> {
        let requests = self.shell.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        requests.write_all(format!("{verb} {word}\n").as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<String> {
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        match answer.strip_suffix('\n') {
            Some(status) => Ok(status.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Waiting first closes the shell's input, which ends it. A test that continues, or the next one, then finds the port
        // and the folder free. If this fails, nothing more can be done.
        let _ = self.shell.wait();
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(MAX_LOG_LINES)..].join("\n")
}
