//! Series over HTTP.

// Spec: A14, H9.

use std::time::Duration;

use ichido_client::Client;
use ichido_core::series::MAX_POINTS;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::counters::Arrival;
use ichido_store::message::QueueName;
use ichido_store::testing::{postgres, sqlite};
use ichido_store::token::TokenRole;
use serde_json::{Value, json};

use crate::mounting::{answer, client, foreign_app, token_of};

const HOUR: Duration = Duration::from_hours(1);

/// A mounted API and a viewer.
struct SeriesApi {
    store: Store,
    url: String,
    viewer: Client,
}

impl SeriesApi {
    async fn start(url: &str) -> Self {
        let store = Store::open(url, 2).await.unwrap();
        let url = foreign_app(&store).await;
        let viewer = client(&url, Some(&token_of(&store, TokenRole::Viewer).await));
        Self { store, url, viewer }
    }

    async fn get(&self, query: &str) -> (u16, Value) {
        let answer = answer(self.viewer.read(&format!("/v1/series?{query}")).await.unwrap());
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }

    /// Moves the clock to the second after a full hour, and returns that hour: no minute ends during a case.
    async fn begin_hour(&self) -> Timestamp {
        let hour = i64::try_from(HOUR.as_micros()).unwrap();
        let now = self.store.now().await.unwrap().as_micros();
        let next = now - now.rem_euclid(hour) + hour;
        let ahead = Duration::from_micros(u64::try_from(next - now).unwrap()) + Duration::from_secs(1);
        self.store.advance_clock(ahead);
        Timestamp::from_micros(next)
    }
}

macro_rules! on_both_databases {
    ($($(#[$meta:meta])* async fn $name:ident($api:ident: SeriesApi) $body:block)+) => {
        $(
            $(#[$meta])*
            #[tokio::test]
            async fn $name() {
                let (database, file) = (postgres::fresh_database().await, sqlite::fresh_file());
                for url in [&database.url, &file.url] {
                    let $api = SeriesApi::start(url).await;
                    $body
                }
            }
        )+
    };
}

on_both_databases! {
    async fn a_viewer_reads_counts_and_percentiles_per_step(api: SeriesApi) {
        let from = api.begin_hour().await;
        let counters = api.store.counters();
        counters.serve("orders", "shop");
        for arrival in [Arrival::New, Arrival::New, Arrival::Repeated, Arrival::Conflict] {
            counters.message_arrived("orders", arrival);
        }
        counters.claimed("orders", [Duration::from_millis(2), Duration::from_millis(4)].into_iter());
        counters.executed("orders", 3);
        api.store.series().flush().await.unwrap();
        api.store.advance_clock(Duration::from_mins(7));
        let took: Vec<_> = (1..=100).map(|number| Duration::from_millis(10 * number)).collect();
        counters.sent("orders", &took);
        counters.dead("orders", None);
        counters.parked("orders");
        counters.fenced("orders");
        counters.retried("orders", true);
        api.store.series().flush().await.unwrap();
        let query = format!("subject=queue:orders&from={}&to={}&step=5m", from.plus(Duration::from_mins(1)), from.plus(Duration::from_mins(11)));
        let (status, series) = api.get(&query).await;
        assert_eq!(status, 200, "{series}");
        assert_eq!((&series["subject"], &series["step_seconds"]), (&json!("queue:orders"), &json!(300)));
        let times = [&series["from"], &series["points"][0]["at"], &series["points"][1]["at"], &series["points"][2]["at"], &series["to"]];
        let at = |minutes| json!(from.plus(Duration::from_mins(minutes)).to_string());
        assert_eq!(times, [&at(0), &at(0), &at(5), &at(10), &at(15)], "{series}");
        let none = json!({"count": 0, "sum_seconds": 0.0, "p50_seconds": null, "p99_seconds": null});
        assert_eq!(series["points"][2], json!({
            "at": at(10), "accepted": 0, "replayed": 0, "conflicts": 0, "executed": 0, "sent": 0, "retried": 0, "dead": 0, "parked": 0,
            "fenced": 0, "throttled": 0, "tokens_in": 0, "tokens_out": 0, "possibly_billed_twice": 0, "due_to_claim": none, "due_to_end": none,
        }));
        let first = &series["points"][0];
        assert_eq!([&first["accepted"], &first["replayed"], &first["conflicts"], &first["executed"]].map(Value::as_u64), [2, 1, 1, 3].map(Some));
        assert_eq!((&first["due_to_claim"]["count"], &first["due_to_claim"]["sum_seconds"]), (&json!(2), &json!(0.006)));
        let total = &series["total"];
        for (member, count) in [("accepted", 2), ("sent", 100), ("dead", 1), ("parked", 1), ("fenced", 1), ("retried", 1)] {
            assert_eq!(total[member], json!(count), "{member} of {total}");
        }
        let ended = &series["points"][1]["due_to_end"];
        assert_eq!((&ended["count"], &ended["sum_seconds"]), (&json!(100), &json!(50.5)));
        for (member, exact) in [("p50_seconds", 0.5), ("p99_seconds", 0.99)] {
            let found = ended[member].as_f64().unwrap();
            assert!((exact * 0.8..=exact * 1.26).contains(&found), "{member} {found}");
        }
        counters.model_called("a model", false);
        counters.model_replied("a model", 120, 30);
        counters.model_billed_twice("a model", 1);
        api.store.series().flush().await.unwrap();
        for subject in ["model:a%20model", "models"] {
            let (_, of_model) = api.get(&format!("subject={subject}")).await;
            let counts = ["executed", "tokens_in", "tokens_out", "possibly_billed_twice"].map(|member| of_model["total"][member].as_u64());
            assert_eq!(counts, [1, 120, 30, 1].map(Some), "{of_model}");
        }
        // By default, 60 minutes until now.
        let (_, recent) = api.get("subject=destination:shop").await;
        assert_eq!((recent["points"].as_array().unwrap().len(), &recent["total"]["sent"], &recent["total"]["accepted"]), (60, &json!(100), &json!(0)));
        assert_eq!(recent["to"], at(8));
        let (_, day) = api.get(&format!("subject=queues&step=1d&to={}", from.plus(HOUR))).await;
        assert_eq!((&day["total"]["sent"], day["points"].as_array().unwrap().len()), (&json!(100), 60));
    }

    async fn a_bad_range_step_or_subject_is_refused(api: SeriesApi) {
        let at = "2026-11-15T03:00:00Z";
        for (query, part) in [
            ("step=1m".to_owned(), "subject"),
            ("subject=orders".to_owned(), "subject must be queue:NAME"),
            ("subject=model:".to_owned(), "subject must be queue:NAME"),
            ("subject=queue:".to_owned(), "subject must be queue:NAME"),
            ("subject=queues&step=90s".to_owned(), "step must be a whole number of minutes"),
            ("subject=queues&step=0m".to_owned(), "step must be a whole number of minutes"),
            ("subject=queues&step=91d".to_owned(), "at most 90d"),
            ("subject=queues&from=yesterday".to_owned(), "from"),
            (format!("subject=queues&from={at}&to={at}"), "from must be before to"),
            (format!("subject=queues&from={at}&to=2026-11-16T04:00:01Z"), "at most 1500 are returned; use a longer step"),
            ("subject=queues&points=5".to_owned(), "known parameters: subject, from, to, step"),
        ] {
            let (status, problem) = api.get(&query).await;
            assert_eq!((status, &problem["code"]), (400, &json!("parameter_invalid")), "{query}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains(part), "{query}: {problem}");
        }
        let (status, most) = api.get(&format!("subject=queues&from={at}&to=2026-11-16T04:00:00Z")).await;
        assert_eq!((status, most["points"].as_array().unwrap().len()), (200, MAX_POINTS as usize));
    }

    async fn a_misspelt_queue_or_destination_is_not_an_idle_one(api: SeriesApi) {
        for (subject, status, code) in [
            ("queue:orders", 200, Value::Null),
            ("destination:shop", 200, Value::Null),
            ("operation:any", 200, Value::Null),
            ("operations", 200, Value::Null),
            ("queue:order", 404, json!("queue_unknown")),
            ("destination:shops", 404, json!("destination_unknown")),
        ] {
            let (found, body) = api.get(&format!("subject={subject}")).await;
            assert_eq!((found, &body["code"]), (status, &code), "{subject}: {body}");
        }
    }

    async fn a_producer_may_not_read_series(api: SeriesApi) {
        let queues = vec![QueueName::parse("orders").unwrap()];
        let role = TokenRole::Producer { identity: "alice".to_owned(), queues };
        let producer = client(&api.url, Some(&token_of(&api.store, role).await));
        let refused = answer(producer.read("/v1/series?subject=queue:orders").await.unwrap());
        assert_eq!((refused.status, refused.problem().code.as_deref()), (403, Some("role_insufficient")));
    }
}
