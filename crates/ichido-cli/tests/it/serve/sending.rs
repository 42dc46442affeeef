//! `ichido send` to a running server and on its store mean the same.

use std::io::Write as _;
use std::process::{Output, Stdio};

use super::program::{ServerFixture, ichido, on_both};

fn sent(
    fixture: &ServerFixture,
    arguments: &[&str],
    token: Option<&str>,
    body: &str,
) -> (Option<i32>, String) {
    let mut command = ichido(fixture.folder.path());
    command
        .env_remove("ICHIDO_SERVER")
        .env_remove("ICHIDO_TOKEN")
        .envs(token.map(|token| ("ICHIDO_TOKEN", token)));
    command.args(["send", "demo", "--key", "k"]).args(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(if status.success() { stdout } else { stderr }).unwrap())
}

on_both! {
    async fn server_and_store_recognise_the_same_message(fixture) {
        let token = fixture.token(&["till", "--role", "producer", "--identity", "local", "--queue", "demo"]);
        let server = fixture.serve(&[]);
        let url = format!("http://{}", server.address);
        let through = |token, body| sent(&fixture, &["--server", &url], token, body);
        let (code, output) = through(Some(token.as_str()), r#"{"qty":1.0}"#);
        assert_eq!((code, output.starts_with("new ")), (Some(0), true), "{output}");
        let id = output.trim().rsplit(' ').next().unwrap().to_owned();
        for again in [
            through(Some(token.as_str()), r#"{"qty": 1}"#),
            sent(&fixture, &["--store", &fixture.url], None, r#"{ "qty": 1.00 }"#),
        ] {
            assert_eq!(again, (Some(0), format!("same {id}\n")));
        }
        let (code, output) = through(Some(token.as_str()), r#"{"qty":2}"#);
        assert_eq!((code, output.contains("key_conflict")), (Some(4), true), "{output}");
        let (code, output) = through(None, r#"{"qty":1}"#);
        assert_eq!((code, output.contains("token_missing")), (Some(1), true), "{output}");
    }
}
