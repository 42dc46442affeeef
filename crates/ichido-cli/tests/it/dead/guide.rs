//! What the guide to the transactional outbox says of a queue that a program of one's own serves.

use super::place::Place;

const GUIDE: &str = include_str!("../../../../../docs/guides/transactional-outbox.md");

/// The page's `ichido.toml`, on this store.
fn settings(place: &Place) -> String {
    let toml = GUIDE.split("```toml\n").nth(2).expect("the second is the one").split("```").next();
    toml.expect("a block").replace("sqlite:shop.db", &place.url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_of_a_program_are_listed_by_the_store_alone_and_requeued_by_the_guides_settings() {
    let place = Place::on_sqlite().await;
    let id = place.dead("mail", 1).await[0];
    let file = place.folder().join("ichido.toml");
    std::fs::remove_file(&file).expect("removed");
    let run = |arguments: &str, given: Option<&str>| {
        assert!(GUIDE.contains(&format!("$ ichido dead {arguments}")), "not on the page: {arguments}");
        let arguments: Vec<&str> = arguments.split(' ').filter(|word| *word != "sqlite:shop.db").collect();
        let arguments = arguments.into_iter().chain(given).collect::<Vec<_>>();
        place.command(&arguments).env_remove("ICHIDO_STORE").output().expect("it runs")
    };
    let listed = run("list --store sqlite:shop.db", Some(&place.url));
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&id.to_string()), "{listed:?}");
    let refused = place.run(&["requeue", "--queue", "mail", "--yes"]);
    assert_eq!((refused.code, place.status(id).await), (Some(2), "dead"), "{refused:?}");

    std::fs::write(&file, settings(&place)).expect("written");
    let requeued = run("requeue --queue mail --yes", None);
    // On a terminal what goes on is said before the last line.
    let said = String::from_utf8_lossy(&requeued.stdout);
    assert!(GUIDE.contains(said.trim_end().trim_end_matches("1 requeued")), "not on the page:\n{said}");
    assert_eq!((requeued.status.code(), place.status(id).await), (Some(0), "queued"), "{requeued:?}");
}
