//! The program itself: how it starts, who may sign in, and how it stops.

use std::net::SocketAddr;
use std::process::{Output, Stdio};

use bookmarks::{App, Settings};
use http::{Method, StatusCode};
use ichido_store::testing::{postgres, sqlite};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::fixture::{ApiRequest, in_time, look_again};
use super::models::{playing, say};
use super::pages::{Pages, story};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bookmarks");

pub(crate) async fn run(store: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).args(["--store", store]).stdin(Stdio::null());
    command.output().await.unwrap()
}

/// Starts it without arguments and returns its output until it served.
async fn start(store: &str) -> (Child, Vec<String>) {
    start_as(store, |command| command).await
}

/// The same, with more arguments.
pub(crate) async fn start_as(
    store: &str,
    configure: impl FnOnce(&mut Command) -> &mut Command,
) -> (Child, Vec<String>) {
    let mut command = Command::new(PROGRAM);
    command.args(["--listen", "127.0.0.1:0", "--store", store]).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = configure(&mut command).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut printed = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let is_last = line.starts_with("bookmarks: serving on ");
        printed.push(line);
        if is_last {
            return (child, printed);
        }
    }
    panic!("it did not start: {printed:?}");
}

/// Returns its address, and the token of the person that the first start added.
pub(crate) fn address_and_token(printed: &[String]) -> (SocketAddr, String) {
    let address = printed.last().unwrap().strip_prefix("bookmarks: serving on http://").unwrap();
    let link = printed.iter().find_map(|line| line.trim().strip_prefix("http://")).unwrap();
    let token = link.strip_prefix(&format!("{address}/sign-in#token=")).unwrap();
    (address.parse().unwrap(), token.to_owned())
}

/// Asks it to stop and waits until it has.
pub(crate) async fn stop(mut child: Child) {
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(id).status().await.unwrap().success());
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn only_the_first_start_prints_a_sign_in_link() {
    in_time(async {
        let file = sqlite::fresh_file();
        let (child, printed) = start(&file.url).await;
        let (address, token) = address_and_token(&printed);
        let me = ApiRequest::to(address, "/v1/me").header("authorization", &format!("Bearer {token}"));
        let answer = me.send().await;
        assert_eq!((answer.status, answer.text("/name").as_str()), (StatusCode::OK, "me"));
        stop(child).await;
        let (child, printed) = start(&file.url).await;
        assert!(!printed.iter().any(|line| line.contains("token")), "{printed:?}");
        stop(child).await;
    })
    .await;
}

/// A service manager must not restart it then: a new, empty file would hide the loss.
#[tokio::test]
async fn a_lost_store_has_its_own_exit_code() {
    in_time(async {
        let file = sqlite::fresh_file();
        let (mut child, _) = start(&file.url).await;
        std::fs::remove_file(file.path()).unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(5));
    })
    .await;
}

/// The token is alone on standard output, for programs; the link is on standard error, for people.
#[tokio::test]
async fn people_are_added_renewed_removed_and_listed() {
    let file = sqlite::fresh_file();
    let added = run(&file.url, &["person", "add", "ann"]).await;
    let token = String::from_utf8(added.stdout).unwrap();
    let printed = String::from_utf8(added.stderr).unwrap();
    assert!(added.status.success() && token.starts_with("bm_") && token.lines().count() == 1, "{token}");
    assert!(printed.contains(&format!("  http://127.0.0.1:4190/sign-in#token={token}")), "{printed}");
    assert!(
        printed.contains("if the service is not at http://127.0.0.1:4190, pass its URL with --public-url"),
        "{printed}"
    );
    let stored_in = format!("store: SQLite, {}", file.path().display());
    assert!(printed.contains(&format!("{stored_in} (created)\n")), "{printed}");
    let again = run(&file.url, &["person", "add", "ann"]).await;
    let why = String::from_utf8(again.stderr).unwrap();
    assert!(!again.status.success() && why.contains("the name is taken"), "{why}");
    assert!(why.contains(&format!("{stored_in}\n")), "it already existed: {why}");

    let renewed = run(&file.url, &["person", "renew", "ann", "--public-url", "https://b.example"]).await;
    let next = String::from_utf8(renewed.stdout).unwrap();
    let printed = String::from_utf8(renewed.stderr).unwrap();
    assert!(renewed.status.success() && next.starts_with("bm_") && next != token, "{next}");
    assert!(printed.contains(&format!("  https://b.example/sign-in#token={next}")), "{printed}");
    assert!(!printed.contains("--public-url"), "it was given: {printed}");

    assert!(run(&file.url, &["person", "add", "bob"]).await.status.success());
    for (arguments, why) in [
        (
            ["person", "renew", "carol"],
            "cannot renew the token of \"carol\": nobody has this name; known names: ann, bob",
        ),
        (
            ["person", "remove", "carol"],
            "cannot remove \"carol\": nobody has this name; known names: ann, bob",
        ),
        (
            ["person", "remove", "ann"],
            "this permanently deletes \"ann\" and 0 bookmarks; pass --yes to confirm",
        ),
    ] {
        let refused = run(&file.url, &arguments).await;
        let printed = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && printed.contains(why), "{printed}");
    }
    let listed = String::from_utf8(run(&file.url, &["person", "list"]).await.stdout).unwrap();
    let (ids, names): (Vec<_>, Vec<_>) = listed.lines().map(|line| line.split_once("  ").unwrap()).unzip();
    assert_eq!(names, ["ann", "bob"]);
    let store = App::open(Settings::new(&file.url, ([127, 0, 0, 1], 0).into())).await.unwrap();
    let people = store.people().await.unwrap();
    assert_eq!(ids, people.iter().map(|person| person.id.to_string()).collect::<Vec<_>>());
    store.close().await;
    assert!(run(&file.url, &["person", "remove", "ann", "--yes"]).await.status.success());
    let left = String::from_utf8(run(&file.url, &["person", "list"]).await.stdout).unwrap();
    assert_eq!(left, listed.lines().nth(1).unwrap().to_owned() + "\n");
}

#[tokio::test]
async fn the_store_may_be_named_before_or_after_the_subcommand() {
    let file = sqlite::fresh_file();
    assert!(run(&file.url, &["person", "add", "ann"]).await.status.success());
    let before = Command::new(PROGRAM).args(["--store", &file.url, "retry-failed"]).output().await.unwrap();
    let stdout = String::from_utf8(before.stdout).unwrap();
    assert!(before.status.success() && stdout.contains("requeued 0 of 0 failed jobs"), "{stdout}");
    let misplaced =
        Command::new(PROGRAM).args(["--listen", "127.0.0.1:0", "person", "list"]).output().await.unwrap();
    let why = String::from_utf8(misplaced.stderr).unwrap();
    assert!(
        !misplaced.status.success() && why.contains("--listen must follow the subcommand person"),
        "{why}"
    );
}

/// A mistyped path is not an empty store.
#[tokio::test]
async fn reading_commands_do_not_create_a_missing_store() {
    let file = sqlite::fresh_file();
    let why = format!("cannot open the store: {} does not exist", file.path().display());
    for arguments in [
        &["person", "list"][..],
        &["person", "renew", "ann"],
        &["person", "remove", "ann", "--yes"],
        &["retry-failed"],
    ] {
        let refused = run(&file.url, arguments).await;
        let printed = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && printed.contains(&why), "{arguments:?}: {printed}");
        assert!(!file.path().exists(), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_store_error_names_the_store_without_its_password() {
    let file = sqlite::fresh_file();
    std::fs::write(file.path(), "this is not a database, but it is long enough to look like one".repeat(20))
        .unwrap();
    for (store, name, cause) in [
        (file.url.clone(), format!("SQLite, {}", file.path().display()), "file is not a database"),
        (
            "postgres://ann:s3cret@127.0.0.1:1/links".to_owned(), // Where nobody listens.
            "PostgreSQL, database \"links\" on 127.0.0.1:1".to_owned(),
            "Connection refused",
        ),
        ("bookmarks.db".to_owned(), "\"bookmarks.db\"".to_owned(), "write sqlite:path"),
    ] {
        let refused = run(&store, &["person", "list"]).await;
        let printed = String::from_utf8(refused.stderr).unwrap();
        assert!(
            !refused.status.success() && printed.contains(&format!("cannot open the store: {name}: ")),
            "{printed}"
        );
        assert_eq!(printed.matches(cause).count(), 1, "{printed}");
        assert!(!printed.contains("s3cret"), "{printed}");
    }
}

#[tokio::test]
async fn startup_prints_store_address_and_summariser() {
    in_time(async {
        let database = postgres::fresh_database().await;
        let (child, printed) = start_as(&database.url, |command| {
            command.args(["--public-url", "https://b.example", "--llm", "openai:a-model"]);
            command.args(["--llm-url", "http://127.0.0.1:9/v1"])
        })
        .await;
        let kept = printed
            .iter()
            .find_map(|line| line.strip_prefix("bookmarks: store: PostgreSQL, database "))
            .unwrap();
        let address = url::Url::parse(&database.url).unwrap();
        assert!(kept.starts_with(&format!("{:?} on ", &address.path()[1..])), "{kept}");
        let by = "bookmarks: summariser: openai model \"a-model\" at http://127.0.0.1:9/v1";
        assert!(printed.iter().any(|line| line == by), "{printed:?}");
        let [.., listening, serving] = &printed[..] else { panic!("{printed:?}") };
        let address: SocketAddr =
            listening.strip_prefix("bookmarks: listening on ").unwrap().parse().unwrap();
        assert_eq!(ApiRequest::to(address, "/livez").send().await.status, StatusCode::OK);
        assert_eq!(serving, "bookmarks: serving on https://b.example");
        stop(child).await;
    })
    .await;
}

#[tokio::test]
async fn the_tokens_of_a_summary_are_a_setting() {
    in_time(async {
        let file = sqlite::fresh_file();
        let fake = playing(vec![say("A fox.")]);
        let pages = Pages::start(|_, _| story()).await;
        let (child, printed) = start_as(&file.url, |command| {
            command.args(["--allow-private-addresses", "--llm", "openai:a-model"]);
            command.args(["--llm-url", &format!("{}/v1", fake.url())]).env("BOOKMARKS_SUMMARY_TOKENS", "300");
            command.env("OPENAI_API_KEY", "sk-of-a-test")
        })
        .await;
        let (address, token) = address_and_token(&printed);
        let as_me =
            |path: &str| ApiRequest::to(address, path).header("authorization", &format!("Bearer {token}"));
        let save = as_me("/v1/bookmarks").method(Method::POST).header("idempotency-key", "k1");
        let id = save.json(&json!({ "url": pages.url("/") })).send().await.text("/id");
        while as_me(&format!("/v1/bookmarks/{id}")).send().await.text("/status") != "done" {
            look_again().await;
        }
        assert_eq!(fake.seen().last_request.unwrap().max_tokens, Some(300));
        stop(child).await;
    })
    .await;
}

#[tokio::test]
async fn invalid_arguments_are_refused_before_anything_is_created() {
    let file = sqlite::fresh_file();
    for (arguments, why) in [
        (vec!["--llm", "gpt-5"], "use openai:MODEL or anthropic:MODEL"),
        (vec!["--llm", "openai:gpt-5"], "set OPENAI_API_KEY in the environment"),
        (vec!["--llm", "nobody:x"], "unknown provider \"nobody\""),
        (vec!["--llm", "openai:gpt-5", "--llm-url", "nonsense"], "bookmarks: --llm-url: must begin with"),
        (
            vec!["--llm", "openai:gpt 5", "--llm-url", "http://127.0.0.1:9"],
            "bookmarks: --llm: must be the provider's model name",
        ),
        (vec!["--alert-webhook", "chat.example"], "bookmarks: --alert-webhook: must begin with"),
        (
            vec!["--alert-webhook", "https://chat.example", "--alert-format", "mail"],
            "use one of webhook, slack",
        ),
        (vec!["--max-attempts", "0"], "use a number from 1 to 1000"),
        (vec!["--summary-tokens", "9"], "9 is not in 64..=128000"),
        (vec!["--keep-responses", "71h"], "use at least 3d"),
        (vec!["--keep-finished", "90"], "write a whole number and a unit"),
        (vec!["--public-url", "bookmarks.example"], "must look like https://bookmarks.example"),
        (vec!["--public-url", "https://bookmarks.example/path"], "without a path"),
    ] {
        let mut command = Command::new(PROGRAM);
        command
            .args(&arguments)
            .args(["--listen", "127.0.0.1:0", "--store", &file.url])
            .env_remove("OPENAI_API_KEY");
        let output = command.output().await.unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && printed.contains(why), "{arguments:?}: {printed}");
    }
    assert!(!file.path().exists());
}
