use std::sync::Mutex;

use ichido::time::Timestamp;
use ichido_store::testing::{postgres, sqlite};
use process_for_tests::own_process;
use process_for_tests::statement_log::{Logged, for_each_statement};

use super::*;
use crate::people;
use crate::settings::{Settings, limits};
use crate::source::{CreatedFrom, SourceHint};
use crate::tags::Tags;

/// The statements of a transaction that imports one link: claim, message, bookmark, words, COMMIT, and what the engine
/// asks around them.
const MAX_STATEMENTS: usize = 7;
/// How many more a full one has: SQLite enqueues in parts of at most 64 messages, whose lengths are powers of two.
const MAX_MORE: usize = 7;

static STATEMENTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn collect(statement: &Logged) {
    STATEMENTS.lock().unwrap().push(statement.text.clone());
}

fn link(person: &Person, number: usize) -> (NewBookmark, u8) {
    let id = Uuid::now_v7();
    let new = NewBookmark {
        id,
        person: person.id,
        url: format!("https://example.com/{number}"),
        title: None,
        edited_title: Some(format!("Link {number}")),
        tags: Tags::default(),
        idempotency_key: format!("import-{id}"),
        source_hint: SourceHint::Article,
        created_from: Some(CreatedFrom::Import),
        now: Timestamp::from_secs(0),
        summary: None,
        is_done: false,
    };
    (new, 0)
}

/// Saves links in one transaction, and returns how many were new, and the statements.
async fn saved(app: &App, person: &Person, links: &[(NewBookmark, u8)]) -> (usize, Vec<String>) {
    STATEMENTS.lock().unwrap().clear();
    let mut open = app.database.begin().await.unwrap();
    let created = save_many(app, &mut open, person, links).await.unwrap();
    open.commit().await.unwrap();
    let mut statements = std::mem::take(&mut *STATEMENTS.lock().unwrap());
    // The pool may open a connection, if the one before is not given back yet.
    statements.retain(|statement| !statement.starts_with("PRAGMA foreign_keys"));
    (created, statements)
}

async fn case(url: &str) {
    let app = App::open(Settings::new(url, "127.0.0.1:0".parse().unwrap())).await.unwrap();
    app.add_person("ann").await.unwrap();
    let person = people::by_name(&app.database, "ann").await.unwrap();
    let (created, one) = saved(&app, &person, &[link(&person, 0)]).await;
    assert_eq!(created, 1);
    assert!(one.len() <= MAX_STATEMENTS, "{one:#?}");
    let full = || (0..limits::IMPORTED_AT_ONCE).map(|number| link(&person, number)).collect::<Vec<_>>();
    let (created, many) = saved(&app, &person, &full()).await;
    assert_eq!(created, limits::IMPORTED_AT_ONCE - 1, "one was saved before");
    assert!(many.len() <= one.len() + MAX_MORE, "{many:#?}");
    let (created, none) = saved(&app, &person, &full()).await;
    assert_eq!(created, 0);
    assert!(none.len() <= one.len(), "{none:#?}");
    app.close().await;
}

#[test]
fn many_links_cost_as_few_statements_as_one() {
    own_process::assert_passes("saving::tests::child");
}

/// Not a test on its own: it counts the statements of the whole process.
#[tokio::test]
#[ignore = "run by the test above in its own process"]
async fn child() {
    if !own_process::is_own() {
        return;
    }
    for_each_statement(collect);
    let (database, file) = (postgres::fresh_database().await, sqlite::fresh_file());
    case(&database.url).await;
    case(&file.url).await;
}
