//! The audit trail, with its filters in the address.

use ichido_store::audit::AuditSealed;

use super::*;

#[tokio::test]
async fn the_audit_trail_is_filtered_and_leads_to_its_subjects() {
    let fixture = Fixture::new().await;
    let empty = fixture.get("/audit", None).await;
    assert!(empty.text.contains("Nobody has done anything yet."), "{}", empty.text);
    let id = fixture.enqueue("order-1", "{}").await;
    for action in ["pause", "resume"] {
        fixture.post(&format!("/queues/orders/{action}"), None, "").await;
    }
    fixture.fail(Effect::NotDone, "refused").await;
    fixture.post(&format!("/messages/{id}/discard"), None, "reason=%3Cb%3Ea+duplicate").await;

    let all = fixture.get("/audit", None).await;
    for part in ["&#60;b&#62;a duplicate", "running", "paused", "waits for a seal"] {
        assert!(all.text.contains(part), "{part}: {}", all.text);
    }
    assert!(all.text.contains(&format!("href=\"/messages/{id}\"")), "{}", all.text);
    assert!(all.text.contains("href=\"/messages?q=queue:orders\""), "{}", all.text);
    assert!(all.text.contains(&format!("href=\"/audit?subject={id}\"")), "{}", all.text);

    let paused = fixture.get("/audit?actor=local&kind=paused", None).await;
    assert_eq!(paused.text.matches("<tr id=\"a-").count(), 1, "one entry: {}", paused.text);
    assert!(paused.text.contains("name=\"kind\" value=\"paused\""), "{}", paused.text);
    let of_message = fixture.get(&format!("/audit?subject={id}"), None).await;
    assert!(of_message.text.contains("discarded") && !of_message.text.contains("<code>paused"));
    let nobody = fixture.get("/audit?actor=nobody", None).await;
    assert!(nobody.text.contains("No entry matches these filters."), "{}", nobody.text);
    let wrong = fixture.get("/audit?subject=orders", None).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert!(
        wrong.text.contains("must be an id") && wrong.text.contains("value=\"orders\""),
        "{}",
        wrong.text
    );
    assert!(
        fixture.get(&format!("/messages/{id}"), None).await.text.contains(&format!("/audit?subject={id}"))
    );
}

#[tokio::test]
async fn a_long_audit_trail_has_pages_and_says_what_is_sealed() {
    let fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    for action in ["pause", "resume"].repeat(30) {
        let done = fixture.post(&format!("/queues/orders/{action}"), None, "").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    }
    while fixture.store.audit().seal(None, 1_000).await.unwrap() == AuditSealed::Nothing {}
    let first = fixture.get("/audit?actor=local", None).await;
    assert!(first.text.contains("sealed, no. 1"), "{}", first.text);
    let next = first.text.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let next = next.replace("&#38;", "&");
    assert!(next.starts_with("/audit?actor=local&cursor="), "{next}");
    let last = fixture.get(&next, None).await;
    let entries = |page: &str| page.matches("<tr id=\"a-").count();
    assert_eq!(entries(&first.text) + entries(&last.text), 60);
    assert!(last.text.contains("href=\"/audit?actor=local\"") && !last.text.contains("rel=\"next\""));
}
