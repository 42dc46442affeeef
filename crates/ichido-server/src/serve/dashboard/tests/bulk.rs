//! Failure groups and bulk operations, as a browser without JavaScript sees them.

use ichido_store::action::AuditAction;
use ichido_store::facts::QueueFacts;
use ichido_store::failure_group::FailureGroup;

use super::*;

const CAUSES: [&str; 2] = ["no such symbol", "not enough money"];

impl Fixture {
    /// Folds the groups as a worker does, and returns them.
    pub(super) async fn groups(&self) -> Vec<FailureGroup> {
        while 0 < self.store.failure_groups().fold(1_000).await.unwrap() {}
        self.store.failure_groups().list(None, 100).await.unwrap()
    }

    /// Records the start of an operation that no server of this test runs.
    pub(super) async fn record_operation(&self, id: Uuid) {
        let action = AuditAction {
            subject: id,
            about: "dead_letters".to_owned(),
            kind: "requeue".to_owned(),
            from: "none".to_owned(),
            to: "started".to_owned(),
            actor: Some("ann".to_owned()),
            detail: Some("state=dead queue=orders before=2026-11-18T00:00:00Z; 4 of 5; fixed".to_owned()),
        };
        self.store.actions().record(&action).await.unwrap();
    }

    /// Publishes that the queue's dead letters may be requeued.
    async fn allow_requeues(&self) {
        let facts = QueueFacts {
            guarantee: Guarantee::None,
            requeue: true,
            max_attempts: NonZeroU32::MIN,
            retry_horizon: Duration::from_mins(1),
        };
        let (node, queue) = (Uuid::now_v7(), QueueName::parse("orders").unwrap());
        self.store.queues().key_kind(&queue, "derived").await.unwrap();
        self.store.nodes().heartbeat(node, "web-1").await.unwrap();
        self.store.facts().publish(node, &[(queue, facts)]).await.unwrap();
    }

    /// Lets some messages fail for a cause.
    async fn fail_some(&self, count: usize, effect: Effect, cause: &str) -> Vec<Uuid> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.enqueue(&Uuid::now_v7().to_string(), "{}").await);
        }
        self.fail(effect, cause).await;
        // A preview counts what died before it; the store's clock may be coarse.
        let died = self.store.now().await.unwrap();
        while self.store.now().await.unwrap() <= died {
            tokio::task::yield_now().await;
        }
        ids
    }

    async fn status(&self, id: Uuid) -> String {
        self.store.messages().get(id).await.unwrap().unwrap().status.as_str().to_owned()
    }

    /// Loads the page of an operation until it says something.
    async fn until_said(&self, location: &str, said: &str) -> Page {
        let until = async {
            loop {
                let page = self.get(location, None).await;
                assert_eq!(page.status, StatusCode::OK, "{}", page.text);
                if page.text.contains(said) {
                    return page;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(MAX_CASE, until).await.unwrap_or_else(|_| panic!("{location} never said {said}"))
    }

    /// Starts an operation from its preview, as a person does.
    async fn start(&self, preview: &Page, more: &str) -> Page {
        let fields: Vec<(String, String)> = hidden_fields(&preview.text);
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(&fields);
        self.post("/operations", None, &format!("{}&{more}", form.finish())).await
    }
}

/// The time limit of a case: far beyond it.
const MAX_CASE: Duration = Duration::from_mins(2);

/// Returns the hidden fields of the form that starts an operation.
fn hidden_fields(text: &str) -> Vec<(String, String)> {
    let form = text.split("action=\"/operations\"").nth(1).unwrap_or_else(|| panic!("{text}"));
    let fields = form.split("<input type=\"hidden\" name=\"").skip(1).map(|rest| {
        let (name, rest) = rest.split_once("\" value=\"").unwrap();
        (name.to_owned(), rest.split_once('"').unwrap().0.to_owned())
    });
    fields.collect()
}

fn field(text: &str, name: &str) -> String {
    hidden_fields(text).into_iter().find(|(known, _)| known == name).unwrap().1
}

#[tokio::test]
async fn dead_letters_are_shown_by_cause() {
    let mut fixture = Fixture::new().await;
    let empty = fixture.get("/dead-letters", None).await;
    assert!(empty.text.contains("each cause appears here once"), "{}", empty.text);
    fixture.fail_some(3, Effect::NotDone, "order 17: no such symbol \"ACMEE\"").await;
    // Its first sample is a moment old.
    (fixture.access, fixture.pages) = server(&fixture.store, None);
    let waits = fixture.get("/dead-letters", None).await;
    assert!(waits.text.contains("3 dead letters are not grouped yet"), "{}", waits.text);
    let overview = fixture.get("/", None).await;
    assert!(overview.text.contains("Dead letters: 3"), "{}", overview.text);

    fixture.fail_some(2, Effect::NotDone, "order 18: no such symbol \"NOPE\"").await;
    fixture.fail_some(1, Effect::NotDone, CAUSES[1]).await;
    let groups = fixture.groups().await;
    assert_eq!(groups.len(), 2, "six failures of two causes");
    let group = groups.iter().find(|group| group.count == 5).unwrap().id;
    let page = fixture.get("/dead-letters", None).await;
    assert!(page.text.contains("order #: no such symbol"), "{}", page.text);
    assert!(page.text.contains(&format!("/dead-letters/groups/{group}#rows\">5</a>")), "{}", page.text);
    let requeue = format!("/operations/new?action=requeue&#38;state=dead&#38;group={group}\"");
    assert!(page.text.contains(&requeue), "{}", page.text);

    let shown = fixture.get(&format!("/dead-letters/groups/{group}"), None).await;
    let latest = "<dt>Latest error, in full</dt><dd>order 18: no such symbol &#34;NOPE&#34;</dd>";
    assert!(shown.text.contains(latest), "{}", shown.text);
    assert_eq!(shown.text.matches("<tr id=\"d-").count(), 5, "its rows and no others: {}", shown.text);
    let rows = fixture.get(&format!("/dead-letters?state=dead&group={group}"), None).await;
    assert_eq!(rows.text.matches("<tr id=\"d-").count(), 5, "{}", rows.text);
    let all = fixture.get("/dead-letters?state=dead", None).await;
    assert_eq!(all.text.matches("<tr id=\"d-").count(), 6);
}

#[tokio::test]
async fn the_overview_names_the_causes_of_dead_letters() {
    let fixture = Fixture::new().await;
    fixture.fail_some(2, Effect::NotDone, CAUSES[0]).await;
    let group = fixture.groups().await[0].id;
    let overview = fixture.get("/", None).await;
    let link = format!(
        "<a class=\"strong\" href=\"/dead-letters/groups/{group}\">orders: BAD_REQUEST {}. Open messages: 2</a>",
        CAUSES[0]
    );
    assert!(overview.text.contains(&link), "{}", overview.text);
    assert!(!overview.text.contains("Dead letters: 2"), "the cause instead of a bare number");
    let done = fixture.post(&format!("/dead-letters/groups/{group}/acknowledge"), None, "").await;
    assert_eq!(done.location(), format!("/dead-letters/groups/{group}?did=acknowledge"));
    assert!(!fixture.get("/", None).await.text.contains(&link), "somebody works on it");
}

#[tokio::test]
async fn a_group_says_whether_its_messages_may_have_taken_effect() {
    const HINT: &str = "Some of them may have taken effect.";
    const LATEST: &str = "Latest error, in full";
    let fixture = Fixture::new().await;
    for (effect, is_said) in [(Effect::NotDone, false), (Effect::Unknown, true)] {
        fixture.fail_some(1, effect, CAUSES[0]).await;
        let group = fixture.groups().await[0].id;
        let page = fixture.get(&format!("/dead-letters/groups/{group}"), None).await;
        assert_eq!(page.text.contains(HINT), is_said, "{effect:?}: {}", page.text);
        assert!(!page.text.contains(LATEST), "the title says it: {}", page.text);
    }
}

#[tokio::test]
async fn a_group_is_acknowledged_resolved_and_comes_back() {
    let fixture = Fixture::new().await;
    fixture.fail_some(2, Effect::NotDone, CAUSES[0]).await;
    let group = fixture.groups().await[0].id;
    let path = format!("/dead-letters/groups/{group}");
    for (action, said) in [("acknowledge", "</svg>acknowledged"), ("resolve", "</svg>resolved")] {
        let done = fixture.post(&format!("{path}/{action}"), None, "").await;
        let page = fixture.get(done.location(), None).await;
        assert!(page.text.contains(said) && page.text.contains("role=\"status\""), "{action}: {}", page.text);
    }
    fixture.fail_some(1, Effect::NotDone, CAUSES[0]).await;
    fixture.groups().await;
    let page = fixture.get(&path, None).await;
    assert!(page.text.contains("</svg>came back") && page.text.contains("/resolve\""), "{}", page.text);
    let unknown = fixture.get(&format!("/dead-letters/groups/{}", Uuid::nil()), None).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_preview_says_what_will_happen_and_changes_nothing() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    let dead = fixture.fail_some(50, Effect::NotDone, CAUSES[0]).await;
    fixture.fail_some(1, Effect::Done, CAUSES[0]).await;
    let group = fixture.groups().await[0].id;
    let group_page = fixture.get(&format!("/dead-letters/groups/{group}"), None).await;
    let href = format!("/operations/new?action=requeue&state=dead&group={group}");
    assert!(group_page.text.contains(&href.replace('&', "&#38;")), "{}", group_page.text);
    let page = fixture.get(&href, None).await;
    for said in [
        "50 of 51 will be requeued. Refused: 1.",
        "it took effect; discard it",
        "1 first, then 2, then 10, then the other",
        "halts if more than 10 % of them fail",
        "Type the number 50 to confirm",
        "Reason, for the audit trail (optional)",
        "data-key=\"d\" title=\"51 dead, 0 parked\" aria-current=\"page\"",
        "Messages that die later are not included.",
    ] {
        assert!(page.text.contains(said), "{said}: {}", page.text);
    }
    assert_eq!(fixture.status(dead[0]).await, "dead");
    assert!(fixture.get("/operations", None).await.text.contains("No bulk operation yet."));

    let nothing = fixture.get("/operations/new?action=requeue&state=dead&queue=orders&code=GONE", None).await;
    assert!(nothing.text.contains("No message matches.") && !nothing.text.contains("name=\"typed\""));
    let unknown = fixture.get("/operations/new?action=burn", None).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST, "{}", unknown.text);
}

#[tokio::test]
async fn nothing_starts_before_the_number_is_typed() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    let dead = fixture.fail_some(3, Effect::NotDone, CAUSES[0]).await;
    let preview = fixture.get("/operations/new?action=requeue&state=dead", None).await;
    for typed in ["", "2", "all", "33"] {
        let refused = fixture.start(&preview, &format!("typed={typed}&reason=fixed")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{typed}");
        assert!(refused.text.contains("Nothing was started: type 3"), "{typed}: {}", refused.text);
        assert!(refused.text.contains("value=\"fixed\""), "what was written stays: {}", refused.text);
        assert_eq!(field(&refused.text, "as_of"), field(&preview.text, "as_of"), "the same messages");
    }
    assert_eq!(fixture.status(dead[0]).await, "dead");
    let discard = fixture.get("/operations/new?action=discard&state=dead", None).await;
    let refused = fixture.start(&discard, "typed=3&reason=").await;
    assert!(
        refused.status.is_client_error() && refused.text.contains("a discard needs a reason"),
        "{}",
        refused.text
    );
    assert!(fixture.get("/operations", None).await.text.contains("No bulk operation yet."));
}

#[tokio::test]
async fn all_is_confirmed_by_its_word_and_not_by_a_number() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    let dead = fixture.fail_some(3, Effect::NotDone, CAUSES[0]).await;
    let form = "action=requeue&state=dead&confirmed=ALL";
    for typed in ["", "3", "al"] {
        let refused = fixture.post("/operations", None, &format!("{form}&typed={typed}")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{typed}");
        assert!(refused.text.contains("Nothing was started: type ALL"), "{typed}: {}", refused.text);
    }
    assert_eq!(fixture.status(dead[0]).await, "dead");
    let started = fixture.post("/operations", None, &format!("{form}&typed=all")).await;
    assert_eq!(started.status, StatusCode::SEE_OTHER, "{}", started.text);
    fixture.until_said(started.location(), ">3 requeued").await;
}

#[tokio::test]
async fn a_bulk_operation_leaves_out_what_dies_after_its_preview() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    let dead = fixture.fail_some(3, Effect::NotDone, CAUSES[0]).await;
    let preview = fixture.get("/operations/new?action=requeue&state=dead", None).await;
    let later = fixture.fail_some(2, Effect::NotDone, CAUSES[0]).await;
    let started = fixture.start(&preview, "typed=3&reason=the+broker+is+back").await;
    assert_eq!(started.status, StatusCode::SEE_OTHER, "{}", started.text);
    let page = fixture.until_said(started.location(), "</svg>done").await;
    for said in [">3 requeued: ", "the broker is back", "max=\"3\""] {
        assert!(page.text.contains(said), "{said}: {}", page.text);
    }
    for id in dead {
        assert_eq!(fixture.status(id).await, "queued");
    }
    for id in later {
        assert_eq!(fixture.status(id).await, "dead", "it died after the preview");
    }
    let list = fixture.get("/operations", None).await;
    assert!(list.text.contains(started.location()) && list.text.contains("3 requeued."), "{}", list.text);
    // The same form again finds nothing to do.
    let again = fixture.start(&preview, "typed=3").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("Nothing was started"), "{}", again.text);
}

/// The API counts again when it starts: what was confirmed is a maximum.
#[tokio::test]
async fn more_messages_than_confirmed_are_not_moved() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    fixture.fail_some(3, Effect::NotDone, CAUSES[0]).await;
    let form = "action=requeue&state=dead&confirmed=2&typed=2";
    let refused = fixture.post("/operations", None, form).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("3 messages match by now, more than the 2"), "{}", refused.text);
}

#[tokio::test]
async fn a_halted_canary_is_explained_with_its_error_on_every_server() {
    let mut fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    fixture.fail_some(20, Effect::NotDone, CAUSES[0]).await;
    let preview = fixture.get("/operations/new?action=requeue&state=dead", None).await;
    let started = fixture.start(&preview, "typed=20&canary=true").await;
    let location = started.location().to_owned();
    let running = fixture.until_said(&location, "The canary waits for these messages").await;
    for said in ["</svg>running", "1 of 20 requeued.", "/stop\"", "http-equiv=\"refresh\"", "data-every"] {
        assert!(running.text.contains(said), "{said}: {}", running.text);
    }
    fixture.fail(Effect::NotDone, "the broker is still down").await;
    let halted = fixture.until_said(&location, "</svg>halted").await;
    let explained = |text: &str| {
        for said in [
            "The canary halted it: 1 of 1 failed again.",
            "the rest is unchanged",
            "What failed in the canary",
            "the broker is still down",
            "Count the rest, to continue",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(!text.contains("http-equiv") && !text.contains("/stop\""), "it has ended: {text}");
    };
    explained(&halted.text);
    // Another server, or this one after a restart, knows only what is stored.
    (fixture.access, fixture.pages) = server(&fixture.store, None);
    explained(&fixture.get(&location, None).await.text);

    let rest = halted.text.split("href=\"/operations/new?").nth(1).unwrap().split('"').next().unwrap();
    let rest = fixture.get(&format!("/operations/new?{}", rest.replace("&#38;", "&")), None).await;
    assert!(rest.text.contains("19 of 19 will be requeued."), "not the one that died again: {}", rest.text);
}

#[tokio::test]
async fn failures_of_a_halted_canary_are_in_one_list() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    for _ in 0..4 {
        fixture.fail_some(100, Effect::NotDone, CAUSES[0]).await;
    }
    let preview = fixture.get("/operations/new?action=requeue&state=dead", None).await;
    let started = fixture.start(&preview, "typed=400&canary=true").await;
    let location = started.location().to_owned();
    fixture.until_said(&location, "The canary waits for these messages").await;
    fixture.fail(Effect::NotDone, "the broker is still down").await;
    let halted = fixture.until_said(&location, "The canary halted it: 4 of 4 failed again.").await;
    let list =
        halted.text.split("What failed in the canary").nth(1).unwrap_or_else(|| panic!("{}", halted.text));
    let list = list.split("</section>").next().unwrap();
    assert_eq!(list.matches("href=\"/messages/").count(), 4, "{list}");
    assert!(!halted.text.contains("What failed again"), "{}", halted.text);
}

#[tokio::test]
async fn an_operation_says_what_became_of_its_messages() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    fixture.fail_some(3, Effect::NotDone, CAUSES[0]).await;
    let group = fixture.groups().await[0].id;
    // Somebody else's requeue, and one before, are not the operation's.
    fixture.enqueue("other", "{}").await;
    fixture.fail(Effect::NotDone, CAUSES[1]).await;
    let preview = fixture
        .get(&format!("/operations/new?action=requeue&state=dead&queue=orders&group={group}"), None)
        .await;
    assert!(preview.text.contains(&format!("/dead-letters/groups/{group}\">BAD_REQUEST {}", CAUSES[0])));
    let started = fixture.start(&preview, "typed=3&reason=repaired").await;
    let location = started.location().to_owned();
    let waiting = fixture.until_said(&location, "3 requeued:").await;
    assert!(waiting.text.contains("/queues/orders\">3 open</a>"), "{}", waiting.text);
    assert!(waiting.text.contains("data-every"), "it looks again: {}", waiting.text);
    let outcome = waiting.text.split("id=\"outcome\"").nth(1).unwrap().split("</section>").next().unwrap();
    let trail = format!("href=\"/audit?subject={}\"", location.trim_start_matches("/operations/"));
    for said in
        ["role=\"status\" data-whole>3 requeued: ", &format!("/dead-letters/groups/{group}\""), &trail]
    {
        assert!(outcome.contains(said), "{said}: {outcome}");
    }
    fixture.fail(Effect::NotDone, CAUSES[0]).await;
    let ended = fixture.get(&location, None).await;
    for said in [">3 dead</a>", "What failed again", "They are not part of this operation", CAUSES[0]] {
        assert!(ended.text.contains(said), "{said}: {}", ended.text);
    }
    assert!(!ended.text.contains("data-every") && !ended.text.contains("3 open"), "{}", ended.text);
    let list = fixture.get("/operations", None).await;
    let title = format!("Requeue dead letters: BAD_REQUEST {}</a>", CAUSES[0]);
    assert!(list.text.contains(&title), "the link names the cause: {}", list.text);
}

#[tokio::test]
async fn a_parked_group_is_not_shown_as_dead() {
    let fixture = Fixture::new().await;
    fixture.fail_some(2, Effect::Unknown, "no answer").await;
    fixture.groups().await;
    let list = fixture.get("/dead-letters", None).await;
    assert!(list.text.contains("<li class=\"group doubt\""), "{}", list.text);
    assert!(
        list.text.contains("<b class=\"badge\"><span>2</span></b>"),
        "as many as the list has: {}",
        list.text
    );
    fixture.fail_some(1, Effect::NotDone, "no answer").await;
    fixture.groups().await;
    let mixed = fixture.get("/dead-letters", None).await;
    assert!(mixed.text.contains("<li class=\"group bad\""), "{}", mixed.text);
}

#[tokio::test]
async fn an_error_is_one_line_in_a_row() {
    let fixture = Fixture::new().await;
    fixture
        .fail_some(1, Effect::NotDone, r#"400: {"error": {"message": "no such symbol"}, "request": {"a": 1"#)
        .await;
    let rows = fixture.get("/dead-letters?state=dead", None).await;
    assert!(rows.text.contains("<small>400: no such symbol</small>"), "{}", rows.text);
}

#[tokio::test]
async fn a_running_operation_is_stopped() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    fixture.fail_some(20, Effect::NotDone, CAUSES[0]).await;
    let preview = fixture.get("/operations/new?action=requeue&state=dead", None).await;
    let started = fixture.start(&preview, "typed=20&canary=true").await;
    let location = started.location().to_owned();
    let stop = fixture.post(&format!("{location}/stop"), None, "").await;
    assert_eq!((stop.status, stop.location()), (StatusCode::SEE_OTHER, &*location));
    let page = fixture.until_said(&location, "Stopped by local: 1 requeued.").await;
    assert!(page.text.contains("The rest is unchanged."), "{}", page.text);
    let again = fixture.post(&format!("{location}/stop"), None, "").await;
    assert_eq!(again.location(), location, "its page says that it has ended");
}

#[tokio::test]
async fn an_operation_of_a_killed_server_is_not_shown_as_running() {
    let fixture = Fixture::new().await;
    let id = Uuid::now_v7();
    fixture.record_operation(id).await;
    let page = fixture.get(&format!("/operations/{id}"), None).await;
    for said in
        ["</svg>no news", "its server was killed", "15 s after its last sign of life", "fixed", "orders"]
    {
        assert!(page.text.contains(said), "{said}: {}", page.text);
    }
    assert!(!page.text.contains("</svg>running") && page.text.contains("data-every"), "{}", page.text);
}

#[tokio::test]
async fn parked_messages_are_decided_in_bulk() {
    let fixture = Fixture::new().await;
    let parked = fixture.fail_some(3, Effect::Unknown, "no answer").await;
    let rows = fixture.get("/dead-letters?state=parked&queue=orders", None).await;
    assert!(rows.text.contains("action=decide&#38;state=parked&#38;queue=orders"), "{}", rows.text);
    let choice = fixture.get("/operations/new?action=decide&state=parked&queue=orders", None).await;
    assert!(
        choice.text.contains("decision=give_up") && !choice.text.contains("name=\"typed\""),
        "{}",
        choice.text
    );
    let preview =
        fixture.get("/operations/new?action=decide&state=parked&queue=orders&decision=done", None).await;
    assert!(preview.text.contains("3 of 3 will be decided."), "{}", preview.text);
    assert!(!preview.text.contains("name=\"canary\""), "nothing is sent");
    let started = fixture.start(&preview, "typed=3&reason=seen+at+the+broker").await;
    let page = fixture.until_said(started.location(), "</svg>done").await;
    assert!(page.text.contains(">3 decided."), "{}", page.text);
    assert_eq!(fixture.status(parked[0]).await, "sent");
}

#[tokio::test]
async fn viewers_see_operations_and_cannot_act() {
    let fixture = Fixture::new().await;
    fixture.allow_requeues().await;
    let dead = fixture.fail_some(2, Effect::NotDone, CAUSES[0]).await;
    let group = fixture.groups().await[0].id;
    let operation = Uuid::now_v7();
    fixture.record_operation(operation).await;
    let (_, token) = fixture.add_token("ann", TokenRole::Viewer).await;
    let viewer = fixture.sign_in(&token).await;
    let rows = format!("/dead-letters?state=dead&group={group}");
    let group = format!("/dead-letters/groups/{group}");
    for target in ["/dead-letters", &rows, &group, "/operations", &format!("/operations/{operation}")] {
        let page = fixture.get(target, Some(&viewer)).await;
        assert_eq!(page.status, StatusCode::OK, "{target}");
        let main = page.text.split("<main").nth(1).unwrap().split("</main>").next().unwrap();
        assert!(!main.contains("<form") && !main.contains("/operations/new"), "{target}: {main}");
    }
    for (target, form) in [
        ("/operations", "action=requeue&state=dead&confirmed=2&typed=2"),
        (&*format!("{group}/resolve"), ""),
        (&*format!("/operations/{operation}/stop"), ""),
    ] {
        let refused = fixture.post(target, Some(&viewer), form).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{target}");
    }
    assert_eq!(fixture.status(dead[0]).await, "dead");
}
