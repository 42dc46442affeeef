//! What is written: one judgement a line, in the order of the articles (SPEC B6, B11).

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use ichido::judge::{Judged, Outcome};
use serde::Deserialize;
use serde_json::{Value, json};

use super::articles::Article;
use super::profile::Profile;
use crate::out;

/// How `--out` names standard output.
const STDOUT: &str = "-";

/// What a model says of an article.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct Judgement {
    label: String,
    confidence: f64,
    reason: String,
}

/// Where judgements go. A file is written beside its place and put there whole, so that nobody reads a half of it.
pub(super) enum Output {
    Stdout,
    File { place: PathBuf, beside: PathBuf, file: File },
}

impl Output {
    /// Makes sure that it can be written, before anything is paid for.
    pub(super) fn open(place: &Path) -> io::Result<Self> {
        if place.as_os_str() == STDOUT {
            return Ok(Self::Stdout);
        }
        let name = place.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
        if place.is_dir() {
            return Err(io::Error::other("it is a folder; name a file in it"));
        }
        let mut beside_name = name.to_owned();
        beside_name.push(format!(".{}.part", std::process::id()));
        let beside = place.with_file_name(beside_name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&beside)?;
        Ok(Self::File { place: place.to_owned(), beside, file })
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Writes all of it, on the disk when this returns.
    pub(super) fn write(self, lines: &[Value]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut text = Vec::new();
                for line in lines {
                    writeln!(text, "{line}")?;
                }
                out::write(&text)
            }
            Self::File { place, beside, file } => {
                let mut writer = BufWriter::new(file);
                for line in lines {
                    writeln!(writer, "{line}")?;
                }
                writer.into_inner()?.sync_all()?;
                std::fs::rename(beside, place)
            }
        }
    }

    /// Nothing is written after all.
    pub(super) fn leave(self) {
        if let Self::File { beside, .. } = self {
            // What is left behind is empty, and its name says that it is a part.
            _ = std::fs::remove_file(beside);
        }
    }
}

/// One line for an article.
pub(super) fn line(article: &Article, outcome: &Outcome<Judgement>, profile: &Profile, model: &str) -> Value {
    let (title, url) = (article.text("title"), article.text("url"));
    match outcome {
        Outcome::Judged(Judged { answer, at, lost, .. }) => json!({
            "line": article.line,
            "title": title,
            "url": url,
            "label": answer.label,
            "confidence": answer.confidence,
            "reason": answer.reason,
            "model": model,
            "at": at.to_string(),
            "fallback": false,
            "possibly_billed": lost,
        }),
        Outcome::Fallback(why) => json!({
            "line": article.line,
            "title": title,
            "url": url,
            "label": profile.fallback,
            "confidence": 0.0,
            "reason": format!("not judged: {why}"),
            "model": model,
            "at": null,
            "fallback": true,
            "fallback_reason": why.as_str(),
        }),
    }
}
