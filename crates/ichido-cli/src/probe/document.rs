//! The targets of an `OpenAPI` document.

use std::path::{Path, PathBuf};

use ichido_core::settings::ConfigErrors;
use ichido_core::text::visible;
use ichido_probe::{MAX_OPENAPI_BYTES, OpenApiOperation, Target, operations};

use super::targets::read;
use crate::exit::Exit;
use crate::out;

/// A document whose state-changing operations are tested.
pub(super) struct Document {
    file: PathBuf,
    operations: Vec<OpenApiOperation>,
}

impl Document {
    pub(super) fn read(file: &Path, faults: &mut ConfigErrors) -> Option<Self> {
        let text = read(file, MAX_OPENAPI_BYTES, "--openapi", faults)?;
        let found = operations(&text).map_err(|error| format!("{}: {error}", file.display()));
        Some(Self { file: file.to_owned(), operations: faults.check("--openapi", found)? })
    }

    /// Returns scheme, host and port of the first server that has them.
    pub(super) fn origin(&self) -> Result<String, String> {
        let servers = self.operations.iter().filter_map(|one| one.server.as_deref());
        let found = servers.map(split).find_map(|(origin, _)| origin.map(str::to_owned));
        found.ok_or_else(|| {
            format!("{} names no server with a host; pass the URL of the API", self.file.display())
        })
    }

    /// Returns a target for each operation that can be tested at the API's URL.
    ///
    /// A path in that URL is where the operations are; without one, it is that of the document's server. If nobody passed the
    /// URL, operations at another host are skipped.
    pub(super) fn targets(self, api: &Target, is_passed: bool) -> Result<Vec<Target>, Exit> {
        let mut targets = Vec::new();
        for one in self.operations {
            let (origin, path) = one.server.as_deref().map_or((None, ""), split);
            let base = if api.path == "/" { path } else { &api.path }.trim_matches('/');
            let base = if base.is_empty() { String::new() } else { format!("/{base}") };
            let elsewhere = origin.filter(|origin| !is_passed && *origin != api.origin());
            let elsewhere = elsewhere.map(|origin| format!("it is at {origin}; pass that URL"));
            if let Some(why) = one.skipped.or(elsewhere) {
                let what = visible(&format!("{} {} is skipped: {why}", one.method, one.path));
                out::eprint(&format!("ichido probe: {what}\n"));
                continue;
            }
            let path = format!("{base}{}", one.path);
            let mut target = Target { method: one.method, path, body: one.body, ..api.clone() };
            if !target.body.is_empty() {
                target.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                target.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            targets.push(target);
        }
        if targets.is_empty() {
            return Err(Exit::invalid(
                "--openapi",
                format!("{}: no operation can be tested", self.file.display()),
            ));
        }
        Ok(targets)
    }
}

/// Splits the URL of a server into scheme, host and port, if it has them, and the path.
fn split(server: &str) -> (Option<&str>, &str) {
    let Some(start) = server.find("://").map(|start| start + 3) else {
        return (None, server);
    };
    let end = server[start..].find('/').map_or(server.len(), |end| start + end);
    (Some(&server[..end]), &server[end..])
}
