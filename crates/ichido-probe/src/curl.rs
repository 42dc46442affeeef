//! A request written as a curl command, as in `ichido probe -- curl -X POST …`.
//!
//! Guarantee: an option that changes the request is followed, or refused by its name with what to do instead.

use std::collections::VecDeque;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A request read from a curl command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurlRequest {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The header lines.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// Why a command is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurlError(pub String);

impl std::fmt::Display for CurlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CurlError {}

/// Options that change only what curl shows. The probe follows no redirect: a redirected POST is another request.
const IGNORED: [&str; 21] = [
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-i",
    "--include",
    "-v",
    "--verbose",
    "-f",
    "--fail",
    "--fail-with-body",
    "-N",
    "--no-buffer",
    "-#",
    "--progress-bar",
    "-L",
    "--location",
    "-g",
    "--globoff",
    "--compressed",
    "--http1.1",
];
/// The same, each with a value.
const IGNORED_WITH_VALUE: [&str; 7] =
    ["-o", "--output", "-w", "--write-out", "-m", "--max-time", "--connect-timeout"];
/// Options that are refused, and what to do instead.
const REFUSED: [(&[&str], &str); 10] = [
    (
        &["-k", "--insecure"],
        "the probe verifies certificates; trust the service's on this machine, or use http://",
    ),
    (&["-F", "--form"], "the probe builds no forms of several parts; pass the body with --data-binary @FILE"),
    (&["-T", "--upload-file"], "pass the body with --data-binary @FILE"),
    (&["-G", "--get"], "write the data into the URL"),
    (&["-I", "--head"], "a HEAD request changes nothing; pass one that does"),
    (&["-x", "--proxy"], "the probe connects directly; remove it"),
    (&["-E", "--cert"], "the probe has no client certificate; pass a URL that needs none"),
    (&["-n", "--netrc"], "pass the credentials with -u NAME:PASSWORD"),
    (&["-K", "--config"], "write the options of the file into the command"),
    (&["--http2", "--http2-prior-knowledge"], "pass --http2 to ichido probe, before --"),
];

/// Reads the words of a curl command, without `curl` itself. `read` reads a file that holds data.
pub fn parse(
    words: &[String],
    read: &dyn Fn(&Path) -> Result<String, String>,
) -> Result<CurlRequest, CurlError> {
    let mut words: VecDeque<String> = words.iter().cloned().collect();
    let mut request = CurlRequest::default();
    let (mut method, mut data, mut is_json) = (None, None, false);
    while let Some(word) = words.pop_front() {
        let Some((option, attached)) = option(&word) else {
            url(&mut request, word)?;
            continue;
        };
        if IGNORED.contains(&option) {
            // `-sX POST` is `-s -X POST`.
            if let Some(rest) = attached {
                words.push_front(format!("-{rest}"));
            }
            continue;
        }
        if let Some((_, instead)) = REFUSED.iter().find(|(names, _)| names.contains(&option)) {
            return Err(CurlError(format!("{option} is not supported: {instead}")));
        }
        let mut value = || {
            let value = attached.map(str::to_owned).or_else(|| words.pop_front());
            value.ok_or_else(|| CurlError(format!("{option} has no value")))
        };
        let mut line = |name: &str, value: String| request.headers.push((name.to_owned(), value));
        match option {
            "-X" | "--request" => method = Some(value()?),
            "-H" | "--header" => request.headers.extend(header(&value()?)?),
            "-A" | "--user-agent" => line("User-Agent", value()?),
            "-e" | "--referer" => line("Referer", value()?),
            "-u" | "--user" => line("Authorization", basic(&value()?)?),
            "-b" | "--cookie" => line("Cookie", cookie(value()?)?),
            "--url" => url(&mut request, value()?)?,
            "--data-raw" => add(&mut data, "&", &value()?),
            "-d" | "--data" | "--data-ascii" => {
                let text = data_of(value()?, read)?;
                add(&mut data, "&", &text);
            }
            "--data-binary" => add(&mut data, "&", &binary(value()?, read)?),
            "--data-urlencode" => add(&mut data, "&", &encoded(&value()?)?),
            "--json" => {
                is_json = true;
                add(&mut data, "", &binary(value()?, read)?);
            }
            _ if IGNORED_WITH_VALUE.contains(&option) => drop(value()?),
            _ => {
                let use_these = "remove it, or write the request with -X, -H, -d, --json, -u, -b and the URL";
                return Err(CurlError(format!("{option} is not understood; {use_these}")));
            }
        }
    }
    if request.url.is_empty() {
        return Err(CurlError("has no URL".to_owned()));
    }
    request.method = method.unwrap_or_else(|| if data.is_none() { "GET" } else { "POST" }.to_owned());
    let has_type = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if data.is_some() && !has_type {
        let kind = if is_json { "application/json" } else { "application/x-www-form-urlencoded" };
        request.headers.push(("Content-Type".to_owned(), kind.to_owned()));
    }
    request.body = data.unwrap_or_default();
    Ok(request)
}

/// Splits an option from the value that is attached to it, as in `-XPOST`; `None` for another word.
fn option(word: &str) -> Option<(&str, Option<&str>)> {
    if word.starts_with("--") {
        return Some(word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value))));
    }
    let end = 1 + word.strip_prefix('-')?.chars().next()?.len_utf8();
    Some((&word[..end], Some(&word[end..]).filter(|rest| !rest.is_empty())))
}

fn url(request: &mut CurlRequest, url: String) -> Result<(), CurlError> {
    if !request.url.is_empty() {
        return Err(CurlError("has more than one URL".to_owned()));
    }
    // As curl does.
    request.url = if url.contains("://") { url } else { format!("http://{url}") };
    Ok(())
}

/// Reads a header line; `Name:` removes one of curl's own, of which the probe has none.
fn header(line: &str) -> Result<Option<(String, String)>, CurlError> {
    if let Some(name) = line.strip_suffix(';').filter(|name| !name.contains(':')) {
        return Ok(Some((name.trim().to_owned(), String::new())));
    }
    let (name, value) = line.split_once(':').ok_or_else(|| CurlError("a header has no colon".to_owned()))?;
    let value = value.trim();
    Ok((!value.is_empty()).then(|| (name.trim().to_owned(), value.to_owned())))
}

fn basic(credentials: &str) -> Result<String, CurlError> {
    if !credentials.contains(':') {
        return Err(CurlError("-u has no password; write -u NAME:PASSWORD".to_owned()));
    }
    Ok(format!("Basic {}", STANDARD.encode(credentials)))
}

fn cookie(text: String) -> Result<String, CurlError> {
    if text.contains('=') {
        Ok(text)
    } else {
        Err(CurlError("-b names a file, which is not read; write -b 'NAME=VALUE'".to_owned()))
    }
}

/// Appends data, as curl joins that of several options.
fn add(data: &mut Option<String>, separator: &str, more: &str) {
    match data {
        Some(data) => {
            data.push_str(separator);
            data.push_str(more);
        }
        None => *data = Some(more.to_owned()),
    }
}

/// Returns data as `--data-binary` takes it: `@FILE` is the file's content.
fn binary(text: String, read: &dyn Fn(&Path) -> Result<String, String>) -> Result<String, CurlError> {
    match text.strip_prefix('@') {
        Some("-") => Err(CurlError("data from standard input is not read; use @FILE".to_owned())),
        Some(file) => {
            read(Path::new(file)).map_err(|why| CurlError(format!("data of {file} cannot be read: {why}")))
        }
        None => Ok(text),
    }
}

/// Returns data as `-d` takes it: the lines of a file are joined.
fn data_of(text: String, read: &dyn Fn(&Path) -> Result<String, String>) -> Result<String, CurlError> {
    let is_file = text.starts_with('@');
    let mut data = binary(text, read)?;
    data.retain(|c| !is_file || !matches!(c, '\r' | '\n' | '\0'));
    Ok(data)
}

/// Percent-encodes `NAME=CONTENT` or `CONTENT`.
fn encoded(text: &str) -> Result<String, CurlError> {
    let (name, content) = text.split_once('=').map_or((None, text), |(name, content)| (Some(name), content));
    if name.unwrap_or(text).contains('@') {
        return Err(CurlError("--data-urlencode reads no file; use --data-binary @FILE".to_owned()));
    }
    // The marker is replaced later.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~{}".contains(&byte);
    let of_byte =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let content: String = content.bytes().map(of_byte).collect();
    Ok(name.filter(|name| !name.is_empty()).map_or(content.clone(), |name| format!("{name}={content}")))
}

#[cfg(test)]
mod tests;
