//! Generates requests from the API's own description and sends them to a running server.
//!
//! Guarantee: it fails if a response is a 5xx or does not match the description. The seed is fixed, so a run can be
//! repeated. The event stream is left out, because it never ends.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::command_line::CommandLine;
use crate::tools::{node, schemathesis};

/// The random seed.
const SEED: &str = "4180";
/// Maximum number of requests per operation.
const EXAMPLES: &str = "200";
/// The same for the short form, which is part of `test`.
const EXAMPLES_SHORT: &str = "20";
/// The event stream, which never ends.
const STREAM: &str = "/v1/events";

/// How long it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuzzLength {
    /// Part of `test`, with the binary that was built for the tests.
    Short,
    /// A chore of its own.
    Long,
}

/// Starts a server in an empty folder and sends it the generated requests.
pub fn run(root: &Path, length: FuzzLength) -> Result<(), String> {
    let schemathesis = schemathesis::ensure(root)?;
    check_description(root)?;
    if length == FuzzLength::Long {
        CommandLine::cargo(&["build", "--package", "ichido-cli"]).run(root)?;
    }
    let server = FuzzedServer::start(root)?;
    let examples = match length {
        FuzzLength::Short => EXAMPLES_SHORT,
        FuzzLength::Long => EXAMPLES,
    };
    let description = format!("{}/openapi.json", server.address);
    let ours = |file: &str| root.join("xtask").join(file).to_string_lossy().into_owned();
    let line = schemathesis
        .env("SCHEMATHESIS_HOOKS", &ours("schemathesis_hooks.py"))
        .and(&["--config-file", &ours("schemathesis.toml")])
        .and(&["run", &description, "--max-examples", examples, "--seed", SEED, "--exclude-path", STREAM])
        .and(&["--phases", "coverage,fuzzing,stateful", "--exclude-checks", "positive_data_acceptance"])
        .and(&["--generation-database", "none", "--no-color", "--continue-on-failure"]);
    let (printed, outcome) = line.run_captured(&server.folder);
    println!("\n== fuzz-api\n{printed}");
    outcome
}

/// Checks that others can read the description, with its schema, Redocly's rules and TypeScript's compiler.
fn check_description(root: &Path) -> Result<(), String> {
    let npm =
        |script| CommandLine::new("npm", &["--prefix", node::OPENAPI_FOLDER, "--silent", "run", script]);
    let by_schema = schemathesis::spec_validator(root).and(&["docs/openapi.json"]);
    for line in [by_schema, npm("lint"), npm("types")] {
        let (printed, outcome) = line.clone().run_captured(root);
        println!("\n== docs/openapi.json\n{printed}");
        outcome.map_err(|error| format!("{error}\nTo run it alone:\n\n  {line}"))?;
    }
    Ok(())
}

/// A server that is killed when this is dropped.
struct FuzzedServer {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl FuzzedServer {
    fn start(root: &Path) -> Result<Self, String> {
        let folder = root.join("target/fuzz-api");
        // Files of the last run; it is fine if there are none.
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut command = Command::new(crate::built(root).join("ichido"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&folder).stdout(Stdio::piped());
        // A developer's own store must not be used.
        for name in ["ICHIDO_STORE", "ICHIDO_CONFIG", "ICHIDO_LOG"] {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(|error| format!("cannot start `ichido serve`: {error}"))?;
        let out = child.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(out).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| address(&line));
        // The output must be read on, or the server would block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let mut server = Self { child, address: String::new(), folder };
        server.address =
            address.ok_or("`ichido serve` exited before it printed its address; see its output above")?;
        Ok(server)
    }
}

/// Returns the address in the line that reports it.
fn address(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("serving on http://")?;
    let address = rest.split([' ', '/', ',']).next()?;
    Some(format!("http://{address}"))
}

impl Drop for FuzzedServer {
    fn drop(&mut self) {
        // A server that is already gone is fine.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
