//! The transactional outbox guide, on a queue that the user's own program serves.

use super::fixture::StoreFixture;

const GUIDE: &str = include_str!("../../../../../docs/guides/transactional-outbox.md");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_managed_with_only_the_store() {
    let fixture = StoreFixture::on_sqlite().await;
    let id = fixture.dead("mail", 1).await[0];
    std::fs::remove_file(fixture.folder().join("ichido.toml")).expect("removed");
    let run = |arguments: &str| {
        assert!(GUIDE.contains(&format!("ichido dead {arguments}")), "not on the page: {arguments}");
        let arguments = arguments.replace("sqlite:shop.db", &fixture.url);
        let arguments: Vec<&str> = arguments.split(' ').collect();
        fixture.command(&arguments).env_remove("ICHIDO_STORE").output().expect("it runs")
    };
    let listed = run("list --store sqlite:shop.db");
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&id.to_string()), "{listed:?}");
    let requeued = run("requeue --queue mail --yes --store sqlite:shop.db");
    // On the page, the line about the operation is before the last one; it goes to standard error.
    let printed = String::from_utf8_lossy(&requeued.stdout);
    assert!(GUIDE.contains(printed.trim_end().trim_end_matches("1 requeued")), "not on the page:\n{printed}");
    assert_eq!((requeued.status.code(), fixture.status(id).await), (Some(0), "queued"), "{requeued:?}");
}
