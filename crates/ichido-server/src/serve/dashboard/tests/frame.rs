//! The frame around every page: whose instance it is, what the page cost, and how long it may take.

use tokio::task::JoinSet;

use super::*;
use crate::instance::{Instance, InstanceColour};
use crate::limits::MAX_LISTINGS_PER_TOKEN;
use crate::serve::caller::ApiCaller;

#[tokio::test]
async fn each_term_leads_to_its_guide() {
    let fixture = Fixture::new().await;
    let help = fixture.get("/help", None).await;
    let guides: Vec<&str> = help.text.split("href=\"/help/guides/").skip(1).collect();
    assert!(!guides.is_empty(), "{}", help.text);
    for guide in guides {
        let target = format!("/help/guides/{}", guide.split('"').next().unwrap());
        let page = fixture.get(&target, None).await;
        assert!(
            page.status == StatusCode::OK && page.text.contains("lang=\"en\"># "),
            "{target}: {}",
            page.text
        );
    }
    assert_eq!(fixture.get("/help/guides/other", None).await.status, StatusCode::NOT_FOUND);
}

/// Returns how many statements the foot of a page counts.
fn statements(page: &Page) -> u32 {
    let count = page.text.split("Statements: ").nth(1);
    count.map_or(0, |rest| rest.split(' ').next().unwrap().parse().unwrap())
}

fn refresh(target: &str) -> HttpRequest<Body> {
    let mut request = request(Method::GET, target, None, "");
    request.headers_mut().insert("ichido-refresh", HeaderValue::from_static("1"));
    request
}

#[tokio::test]
async fn each_page_says_what_it_cost() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    for target in
        ["/", "/messages", "/dead-letters", "/queues", "/alerts", "/nodes", &format!("/messages/{id}")]
    {
        let page = fixture.get(target, None).await;
        assert!(page.text.contains("id=\"cost\""), "{target}: {}", page.text);
    }
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!((2..20).contains(&statements(&page)), "{}", page.text);
    assert!(page.text.contains("A statement of a page is stopped after 3.0 s."), "{}", page.text);
}

#[tokio::test]
async fn only_admins_see_the_sql() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    let target = format!("/messages/{id}?explain");
    for (role, sees) in [(TokenRole::Viewer, false), (TokenRole::Operator, false), (TokenRole::Admin, true)] {
        let (_, token) = fixture.add_token(role.as_str(), role.clone()).await;
        let cookie = fixture.sign_in(&token).await;
        let page = fixture.get(&target, Some(&cookie)).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        assert_eq!(page.text.contains("SELECT"), sees, "{role:?}: {}", page.text);
        assert_eq!(page.text.contains("Hide the SQL"), sees, "{role:?}");
        let plain = fixture.get(&format!("/messages/{id}"), Some(&cookie)).await;
        assert!(!plain.text.contains("SELECT"), "{role:?}");
        assert_eq!(plain.text.contains(&format!("href=\"/messages/{id}?explain\"")), sees, "{role:?}");
    }
}

#[tokio::test]
async fn many_viewers_cost_what_one_costs() {
    const VIEWERS: usize = 50;
    let fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    for target in ["/", "/messages", "/queues", "/dead-letters"] {
        let (_, pages) = server(&fixture.store, None);
        let alone = Fixture { pages, ..Fixture::new().await };
        let one = statements(&alone.send(refresh(target)).await);
        let (_, pages) = server(&fixture.store, None);
        let mut viewers = JoinSet::new();
        for _ in 0..VIEWERS {
            let mut pages = pages.clone();
            viewers.spawn(async move { pages.call(refresh(target)).await.unwrap() });
        }
        let mut all = 0;
        while let Some(response) = viewers.join_next().await {
            let text = response.unwrap().into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&text).into_owned();
            all += statements(&Page { status: StatusCode::OK, headers: http::HeaderMap::new(), text });
        }
        assert!(0 < one && all == one, "{target}: {all} statements, and {one} for one viewer");
    }
}

#[tokio::test]
async fn an_instance_has_its_name_and_colour() {
    let fixture = Fixture::new().await;
    let plain = fixture.get("/", None).await;
    assert!(plain.text.contains("localhost:4180 · Ichido</title>"), "{}", plain.text);
    assert!(plain.text.contains("class=\"top calm\"") && plain.text.contains("/assets/icon-blue-"));

    let mut api = in_process::api(fixture.store.clone(), None);
    api.instance = Instance { name: Some("orders <1>".to_owned()), colour: InstanceColour::Red };
    let named = Fixture { pages: pages(Arc::new(api), Arc::clone(&fixture.access), ""), ..fixture };
    let page = named.get("/", None).await;
    assert!(page.text.contains("Overview · orders &#60;1&#62; · Ichido</title>"), "{}", page.text);
    assert!(page.text.contains("<span class=\"instance\">orders &#60;1&#62;</span>"), "{}", page.text);
    assert!(page.text.contains("class=\"top bad\""), "{}", page.text);
    let icon = page.text.split("href=\"/assets/icon-red-").nth(1).unwrap().split('"').next().unwrap();
    let icon = named.get(&format!("/assets/icon-red-{icon}"), None).await;
    assert!(icon.text.contains("fill=\"#ad2b2b\""), "{}", icon.text);
}

#[tokio::test]
async fn a_page_that_takes_too_long_is_stopped() {
    let fixture = Fixture::new().await;
    let api = Arc::new(in_process::api(fixture.store.clone(), None));
    let caller = ApiCaller::local();
    let mut listings = Vec::new();
    for _ in 0..MAX_LISTINGS_PER_TOKEN {
        listings.push(api.listings.acquire(&caller).await);
    }
    let busy = Fixture { pages: pages(Arc::clone(&api), Arc::clone(&fixture.access), ""), ..fixture };
    assert_eq!(busy.get("/help", None).await.status, StatusCode::OK);
    // From here on time passes as soon as everything waits.
    tokio::time::pause();
    let page = busy.get("/messages", None).await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE, "{}", page.text);
    assert!(page.text.contains("longer than 5.0 s") && page.text.contains("data-outage"), "{}", page.text);
}

#[tokio::test]
async fn the_filter_box_suggests_what_is_known() {
    let fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    let page = fixture.get("/messages", None).await;
    for known in ["queue:orders", "state:parked", "payload./"] {
        assert!(page.text.contains(&format!("<option value=\"{known}\"")), "{known}: {}", page.text);
    }
    assert!(
        page.text.contains("list=\"q-values\"") && page.text.contains("examines about 10,000"),
        "{}",
        page.text
    );
}

#[tokio::test]
async fn the_keys_are_listed_without_a_script() {
    let fixture = Fixture::new().await;
    let page = fixture.get("/help", None).await;
    let keys = page.text.split("id=\"keys\"").nth(1).unwrap();
    let navigation = page.text.split("id=\"navigation\"").nth(1).unwrap().split("</nav>").next().unwrap();
    for key in navigation.split("data-key=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(keys.contains(&format!("<kbd>{key}</kbd>")), "{key}: {keys}");
    }
}

#[tokio::test]
async fn keys_of_the_navigation_are_single_and_their_own() {
    let fixture = Fixture::new().await;
    let page = fixture.get("/", None).await;
    let mut keys: Vec<&str> =
        page.text.split("data-key=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert!(5 < count && keys.len() == count && keys.iter().all(|key| key.len() == 1), "{keys:?}");
}

#[tokio::test]
async fn parts_that_are_updated_have_ids_of_their_own() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::Unknown, "no answer").await;
    for target in [
        "/",
        "/messages",
        "/dead-letters?state=parked",
        "/queues",
        "/alerts",
        "/nodes",
        &format!("/messages/{id}"),
    ] {
        let page = fixture.get(target, None).await;
        let mut ids: Vec<&str> =
            page.text.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{target}: an id is repeated");
        for part in page.text.split('<').filter(|tag| tag.split('>').next().unwrap().contains(" data-part")) {
            assert!(part.split('>').next().unwrap().contains(" id=\""), "{target}: {part}");
        }
        assert!(page.text.contains("data-live=\"/live"), "{target}");
    }
}
