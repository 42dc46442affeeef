//! A request written as a curl command, as in `ichido probe -- curl -X POST …`.

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

/// Options of curl that change only what it shows.
const IGNORED: [&str; 12] = [
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
    "-sS",
    "--compressed",
];

/// Reads the words of a curl command, without `curl` itself.
///
/// An option that would change the request and is not understood is an error.
pub fn parse(words: &[String]) -> Result<CurlRequest, CurlError> {
    let mut request = CurlRequest::default();
    let mut method = None;
    let mut data: Vec<String> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (option, inline) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || {
            let value = inline.clone().or_else(|| words.next().cloned());
            value.ok_or_else(|| CurlError(format!("{option} has no value")))
        };
        match option {
            "-X" | "--request" => method = Some(value()?),
            "-H" | "--header" => request.headers.push(header(&value()?)?),
            "-d" | "--data" | "--data-raw" | "--data-binary" | "--data-ascii" => {
                data.push(data_of(value()?)?);
            }
            "--json" => {
                data.push(data_of(value()?)?);
                request.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            "--url" => request.url = value()?,
            option if IGNORED.contains(&option) => (),
            option if option.starts_with('-') => {
                return Err(CurlError(format!(
                    "{option} is not understood; use -X, -H, -d, --json and the URL"
                )));
            }
            url if request.url.is_empty() => url.clone_into(&mut request.url),
            _ => return Err(CurlError("has more than one URL".to_owned())),
        }
    }
    if request.url.is_empty() {
        return Err(CurlError("has no URL".to_owned()));
    }
    request.method = method.unwrap_or_else(|| if data.is_empty() { "GET" } else { "POST" }.to_owned());
    let has_type = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if !data.is_empty() && !has_type {
        let form = "application/x-www-form-urlencoded";
        request.headers.push(("Content-Type".to_owned(), form.to_owned()));
    }
    request.body = data.join("&");
    Ok(request)
}

fn header(line: &str) -> Result<(String, String), CurlError> {
    let (name, value) = line.split_once(':').ok_or_else(|| CurlError("a header has no colon".to_owned()))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn data_of(text: String) -> Result<String, CurlError> {
    if text.starts_with('@') {
        Err(CurlError("data from a file is not read; pass it as text".to_owned()))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<CurlRequest, CurlError> {
        parse(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn curl_commands_are_read_as_curl_does() {
        let request = read(&["-sS", "-H", "X-User: ann", "--json", r#"{"a":1}"#, "http://h/orders"]).unwrap();
        assert_eq!(
            (&*request.method, &*request.url, &*request.body),
            ("POST", "http://h/orders", r#"{"a":1}"#)
        );
        let expected = [("X-User", "ann"), ("Content-Type", "application/json")]
            .map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(request.headers, expected);
        let request = read(&["--request=PUT", "-d", "a=1", "-d", "b=2", "--url", "http://h/"]).unwrap();
        assert_eq!((&*request.method, &*request.body), ("PUT", "a=1&b=2"));
        assert_eq!(request.headers[0].1, "application/x-www-form-urlencoded");
    }

    #[test]
    fn an_option_that_changes_the_request_is_refused() {
        for (line, part) in [
            (&["-k", "http://h/"][..], "-k is not understood"),
            (&["-d", "@file", "http://h/"], "from a file"),
            (&["-X"], "has no value"),
            (&["-s"], "has no URL"),
            (&["http://a/", "http://b/"], "more than one URL"),
        ] {
            assert!(read(line).unwrap_err().to_string().contains(part), "{line:?}");
        }
    }
}
