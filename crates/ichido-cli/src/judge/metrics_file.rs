//! `--metrics-file`: the metrics of a run in Prometheus' text format, for a collector of text files.
// Spec: B12.

use std::path::{Path, PathBuf};

use ichido::prometheus::render;
use ichido_server::serve::metrics::install_recorder;

use super::{Args, protected_files};
use crate::exit::Exit;
use ichido_server::part_file::PartFile;

/// The flag that names the file.
const FLAG: &str = "--metrics-file";

/// The file, and how to render the metrics of this process.
pub(super) struct MetricsFile {
    path: PathBuf,
    render: Box<dyn Fn() -> String>,
}

impl MetricsFile {
    /// Checks that the file can be written, and starts to record. Call it before the judge is made.
    pub(super) fn start(path: &Path, args: &Args) -> Result<Self, Exit> {
        if args.out.as_deref() == Some(path) {
            return Err(Exit::invalid(FLAG, "is the same file as --out; pass another file"));
        }
        let protected: Vec<&Path> = protected_files(args).into_iter().chain(args.out.as_deref()).collect();
        PartFile::create(path, &protected).map_err(|what| Exit::invalid(FLAG, what))?;
        let recorder = install_recorder()?;
        Ok(Self { path: path.to_owned(), render: Box::new(move || render(&recorder)) })
    }

    /// Replaces the file. A failure does not end a run that is paid for.
    pub(super) fn write(&self) {
        let text = (self.render)();
        let part = PartFile::create(&self.path, &[]);
        let written = part.and_then(|part| part.finish(&text).map_err(|error| error.to_string()));
        if let Err(why) = written {
            tracing::warn!(why, "failed to write the metrics file");
        }
    }
}
