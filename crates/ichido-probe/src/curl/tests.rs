use super::*;

fn read(line: &[&str]) -> Result<CurlRequest, CurlError> {
    let file = |path: &Path| match path.to_str() {
        Some("order.json") => Ok("{\"item\":\r\n\"tea\"}\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    parse(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &file)
}

#[track_caller]
fn assert_read(line: &[&str], method: &str, headers: &[(&str, &str)], body: &str) {
    let request = read(line).unwrap();
    let found: Vec<(&str, &str)> = request.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!((&*request.method, &*request.body), (method, body), "{line:?}");
    assert_eq!(found, headers, "{line:?}");
    assert_eq!(request.url, "http://h/orders", "{line:?}");
}

const JSON: (&str, &str) = ("Content-Type", "application/json");
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

#[test]
fn curl_commands_are_read_as_curl_does() {
    let user = ("X-User", "ann");
    assert_read(
        &["-sS", "-H", "X-User: ann", "--json", r#"{"a":1}"#, "http://h/orders"],
        "POST",
        &[user, JSON],
        r#"{"a":1}"#,
    );
    assert_read(
        &["--request=PUT", "-d", "a=1", "-d", "b=2", "--url", "http://h/orders"],
        "PUT",
        &[FORM],
        "a=1&b=2",
    );
    assert_read(&["-sXPOST", "-da=1", "h/orders"], "POST", &[FORM], "a=1");
    assert_read(&["-sX", "PATCH", "h/orders", "-HX-User: ann"], "PATCH", &[user], "");
    assert_read(&["h/orders", "--data-raw", "@a"], "POST", &[FORM], "@a");
    assert_read(&["h/orders", "--data-urlencode", "a=1 + 2"], "POST", &[FORM], "a=1%20%2B%202");
    assert_read(&["h/orders", "--json", "[1", "--json", ",2]"], "POST", &[JSON], "[1,2]");
    assert_read(&["h/orders"], "GET", &[], "");
}

#[test]
fn credentials_and_cookies_become_headers() {
    let basic = ("Authorization", "Basic YW5uOnMzY3JldA==");
    assert_read(&["-u", "ann:s3cret", "h/orders"], "GET", &[basic], "");
    assert_read(&["-b", "session=1", "h/orders"], "GET", &[("Cookie", "session=1")], "");
    assert_read(
        &["-A", "me", "-e", "http://h/", "h/orders"],
        "GET",
        &[("User-Agent", "me"), ("Referer", "http://h/")],
        "",
    );
}

#[test]
fn data_of_a_file_is_read_as_curl_does() {
    let whole = "{\"item\":\r\n\"tea\"}\n";
    assert_read(&["-d", "@order.json", "h/orders"], "POST", &[FORM], r#"{"item":"tea"}"#);
    assert_read(&["--data-binary", "@order.json", "h/orders"], "POST", &[FORM], whole);
    assert_read(&["--json", "@order.json", "h/orders"], "POST", &[JSON], whole);
}

/// As Chrome copies it, after the shell has unquoted `$'…'`.
#[test]
fn a_command_copied_from_a_browser_is_read() {
    let line = [
        "http://h/orders",
        "-H",
        "accept: */*",
        "-H",
        "content-type: application/json",
        "-b",
        "session=1; theme=dark",
        "-H",
        "sec-ch-ua: \"Chromium\";v=\"141\"",
        "--data-raw",
        "{\"item\":\"l'eau\"}",
        "--compressed",
    ];
    let headers = [
        ("accept", "*/*"),
        ("content-type", "application/json"),
        ("Cookie", "session=1; theme=dark"),
        ("sec-ch-ua", "\"Chromium\";v=\"141\""),
    ];
    assert_read(&line, "POST", &headers, "{\"item\":\"l'eau\"}");
    // As Postman writes it.
    let line =
        ["--location", "--request", "POST", "http://h/orders", "--header", "X-Empty;", "--data", "a=1"];
    assert_read(&line, "POST", &[("X-Empty", ""), FORM], "a=1");
}

#[test]
fn an_option_that_is_not_followed_is_refused_by_name() {
    for (line, part) in [
        (&["-k", "http://h/"][..], "-k is not supported: the probe verifies certificates"),
        (&["-sk", "http://h/"], "-k is not supported"),
        (&["--insecure", "http://h/"], "--insecure is not supported"),
        (&["-F", "a=@b", "http://h/"], "-F is not supported: the probe builds no forms"),
        (&["-G", "-d", "a=1", "http://h/"], "-G is not supported: write the data into the URL"),
        (&["--http2", "http://h/"], "pass --http2 to ichido probe"),
        (
            &["--digest", "http://h/"],
            "--digest is not understood; remove it, or write the request with -X, -H",
        ),
        (&["-Q", "http://h/"], "-Q is not understood"),
        (&["-d", "@none", "http://h/"], "data of none cannot be read: no such file"),
        (&["-d", "@-", "http://h/"], "standard input"),
        (&["-u", "ann", "http://h/"], "-u NAME:PASSWORD"),
        (&["-b", "jar.txt", "http://h/"], "-b names a file"),
        (&["-X"], "-X has no value"),
        (&["-s"], "has no URL"),
        (&["http://a/", "http://b/"], "more than one URL"),
    ] {
        assert!(read(line).unwrap_err().to_string().contains(part), "{line:?}: {:?}", read(line));
    }
}
