//! The page and the program are the same, and the program prints what the page shows.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ichido::dead_letters::{BulkAction, BulkOperation, RequeuePolicies};
use ichido_core::lifecycle::StateName;
use ichido_store::Store;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::message::{MessageFilter, MessageRow};
use ichido_store::testing::sqlite;

use crate::worker::fixture::poll_pause;
use process_for_tests::own_process;

mod on_postgres;

const GUIDE: &str = include_str!("../../../../../../docs/guides/transactional-outbox.md");
/// The longest wait for a line: a retry is due after some seconds.
const LINE_WITHIN: Duration = Duration::from_mins(2);

/// The page's code blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let parts = GUIDE.split(&format!("```{language}\n")).skip(1).collect::<Vec<_>>();
    parts.into_iter().map(|part| part.split("```").next().unwrap()).collect()
}

#[test]
fn guide_blocks_in_order_are_the_whole_program() {
    let (_, here) = include_str!("../guide.rs").split_once("\n\n").unwrap();
    assert_eq!(format!("{}\nmod followed;\n", blocks("rust").join("\n")), here);
}

// Spec: H4.
#[test]
fn outbox_guide_is_a_short_program_on_one_crate_of_ours() {
    let lines = blocks("rust").concat().lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 45, "{lines}");
    let ours: Vec<&str> = blocks("toml")[0].lines().filter(|line| line.starts_with("ichido")).collect();
    assert!(matches!(ours[..], [only] if only.starts_with("ichido = ")), "{ours:?}");
}

/// The program in its own process, which can be killed.
struct Shop {
    process: Child,
    orders: ChildStdin,
    said: Receiver<String>,
}

#[test]
#[ignore = "run by the test below in its own process"]
fn program() {
    if own_process::is_own() {
        super::main().unwrap();
    }
}

impl Shop {
    fn open(file: &sqlite::SqliteTestFile) -> Self {
        let mut process = own_process::command("worker::guide::followed::program")
            .current_dir(file.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, said) = channel();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { orders: process.stdin.take().unwrap(), process, said }
    }

    fn order(&mut self, item: &str) {
        writeln!(self.orders, "{item}").unwrap();
    }

    /// Waits for the page's output. The worker and the main task print concurrently, so two lines may swap.
    fn says(&self, shown: &str) {
        let mut waited_for: Vec<&str> = shown.lines().collect();
        while !waited_for.is_empty() {
            let line = self.said.recv_timeout(LINE_WITHIN);
            let line = line.unwrap_or_else(|_| panic!("never printed: {waited_for:?}"));
            // The test's own output precedes the program's first line, perhaps in the same line.
            let place = waited_for.iter().position(|shown| line.ends_with(shown));
            match place {
                Some(place) => drop(waited_for.remove(place)),
                None => assert!(line.is_empty() || line == "running 1 test", "not on the page: {line}"),
            }
        }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Waits until one of `count` messages has reached a stage, and the others are sent.
async fn until(store: &Store, count: usize, stage: StateName) {
    loop {
        let messages = store.messages().list(&MessageFilter::default(), 10).await.unwrap();
        assert_eq!(messages.len(), count, "a rollback leaves no message");
        let here = |message: &MessageRow| message.status == stage;
        let here_or_sent = |message: &MessageRow| here(message) || message.status == StateName::Sent;
        if messages.iter().any(here) && messages.iter().all(here_or_sent) {
            return;
        }
        poll_pause().await;
    }
}

/// The order and its mail, or neither; also if the process is killed between the two.
// Spec: D4.
#[tokio::test]
async fn outbox_guide_shows_real_output() {
    let file = sqlite::fresh_file();
    let (mails, away) = (file.folder().join("mails"), file.folder().join("away"));
    let shown = blocks("text");
    let [apple, nothing, pear, after, plum, again] = shown[..] else { panic!("six things are shown") };
    std::fs::create_dir(&mails).unwrap();

    let mut shop = Shop::open(&file);
    shop.order("apple");
    shop.says(apple);
    shop.order("nothing");
    shop.says(nothing);
    let store = Store::open(&format!("sqlite:{}", file.folder().join("shop.db").display()), 4).await.unwrap();
    until(&store, 1, StateName::Sent).await;

    std::fs::rename(&mails, &away).unwrap();
    shop.order("pear");
    shop.says(pear);
    // It was given back: in mid-call, the test would have to wait for the lease.
    until(&store, 2, StateName::Failed).await;
    drop(shop);
    std::fs::rename(&away, &mails).unwrap();
    let mut shop = Shop::open(&file);
    shop.says(after);

    std::fs::rename(&mails, &away).unwrap();
    std::fs::write(&mails, "").unwrap();
    shop.order("plum");
    shop.says(plum);
    until(&store, 3, StateName::Dead).await;
    std::fs::remove_file(&mails).unwrap();
    std::fs::rename(&away, &mails).unwrap();
    requeue(&store).await;
    shop.says(again);
    assert_eq!(std::fs::read_dir(&mails).unwrap().count(), 3, "one mail for each order");
}

/// What the command does with the published facts.
async fn requeue(store: &Store) {
    let bulk = BulkOperation {
        store: store.clone(),
        policies: RequeuePolicies::published(store).await.unwrap(),
        action: BulkAction::Requeue { canary: None },
        filter: DeadLetterFilter::default(),
        actor: "olivia".to_owned(),
        reason: None,
    };
    let preflight = bulk.preflight().await.unwrap();
    let report = bulk.run(&preflight, || false, |_| ()).await.unwrap();
    assert_eq!(report.moved, 1);
}
