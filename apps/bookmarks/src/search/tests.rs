mod measured;

use ichido_store::testing::{postgres, sqlite};
use sqlx::AssertSqlSafe;

use super::*;
use crate::bookmarks::{self, LIST, WAITING};
use crate::database::{AppDatabase, on};

/// A bookmark to find: title, tags, URL, summary and text.
type Fields<'a> = [&'a str; 5];

struct Library {
    database: AppDatabase,
    person: Uuid,
}

impl Library {
    async fn open(url: &str) -> Self {
        let library = Self { database: AppDatabase::open(url).await.unwrap(), person: Uuid::now_v7() };
        library.person(library.person).await;
        library
    }

    async fn person(&self, id: Uuid) {
        const SQL: &str = "INSERT INTO people (id, name, token_hash, created_at) VALUES ($1, $2, $3, 0)";
        let mut pooled = self.database.connect().await.unwrap();
        on!(pooled.connection(), c => {
            let insert = sqlx::query(SQL).bind(id).bind(id.to_string()).bind(vec![0_u8; 32]);
            insert.execute(c).await.map(drop)
        })
        .unwrap();
    }

    async fn add(&self, person: Uuid, fields: &[Fields<'_>]) {
        const SQL: &str = "\
            INSERT INTO bookmarks (id, person_id, url, title, tags, summary, summary_by, text, idempotency_key, created_at, job)
            VALUES ($1, $2, $3, $4, $5, $6, 'extract', $7, 'k', 0, $1)";
        let mut open = self.database.begin().await.unwrap();
        let mut connection = open.connection();
        for [title, tags, url, summary, text] in fields {
            let id = Uuid::now_v7();
            let tags = Tags::parse(tags.split_whitespace()).unwrap().to_json();
            on!(&mut connection, c => {
                let insert = sqlx::query(SQL).bind(id).bind(person).bind(url).bind(title).bind(tags).bind(summary);
                insert.bind(text).execute(&mut **c).await.map(drop)
            })
            .unwrap();
            index(&mut connection, id).await.unwrap();
        }
        open.commit().await.unwrap();
    }

    async fn found(&self, person: Uuid, text: &str, after: Position, limit: u32) -> Vec<(String, Position)> {
        let query = Query::parse(text).unwrap();
        let mut pooled = self.database.connect().await.unwrap();
        let found = find(&mut pooled.connection(), person, &query, after, limit).await.unwrap();
        found.into_iter().map(|(bookmark, position)| (bookmark.url, position)).collect()
    }

    /// Returns the numbers in the URLs of what is found.
    async fn numbers(&self, text: &str) -> Vec<String> {
        let found = self.found(self.person, text, Position::START, 100).await;
        found.into_iter().map(|(url, _)| url.rsplit('/').next().unwrap().to_owned()).collect()
    }
}

/// One behaviour, one test per database.
macro_rules! both_databases {
    ($($(#[doc = $doc:literal])* #[test] async fn $name:ident($library:ident: Library) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            async fn case($library: Library) $body

            #[tokio::test]
            async fn postgres() {
                let database = postgres::fresh_database().await;
                case(Library::open(&database.url).await).await;
            }

            #[tokio::test]
            async fn sqlite() {
                let file = sqlite::fresh_file();
                case(Library::open(&file.url).await).await;
            }
        }
    )+ };
}

both_databases! {
    #[test]
    async fn a_match_counts_by_its_most_relevant_field(library: Library) {
        library.add(library.person, &[
            ["a fox", "", "https://a.example/1", "", ""],
            ["", "", "https://a.example/2", "", "fox fox fox fox fox"],
            ["", "", "https://a.example/3", "the fox", ""],
            ["", "", "https://fox.example/4", "", ""],
            ["", "fox", "https://a.example/5", "", ""],
            ["Foxes", "fox", "https://fox.example/6", "fox", "fox"],
            ["a dog", "", "https://a.example/7", "", "and a fox"],
        ]).await;
        assert_eq!(library.numbers("fox").await, ["6", "1", "5", "4", "3", "7", "2"]);
        assert_eq!(library.numbers("fox dog").await, ["7"], "words may be in different fields");
        assert_eq!(library.numbers("fox #fox").await, ["6", "5"], "a tag filters");
        // Each page continues after the one before.
        let (mut paged, mut after) = (Vec::new(), Position::START);
        loop {
            let page = library.found(library.person, "fox", after, 2).await;
            let Some((_, last)) = page.last() else { break };
            after = *last;
            paged.extend(page.into_iter().map(|(url, _)| url.rsplit('/').next().unwrap().to_owned()));
        }
        assert_eq!(paged, ["6", "1", "5", "4", "3", "7", "2"]);
    }

    #[test]
    async fn words_are_found_in_every_spelling(library: Library) {
        library.add(library.person, &[
            ["東京都の検索", "", "https://a.example/1", "", ""],
            ["ＱＵＥＵＥ and ｸﾗｲｱﾝﾄ", "c++ 旅行", "https://a.example/2", "", ""],
            ["", "", "https://xn--wgv71a119e.jp/%E6%97%A5%E8%A8%98/3", "", ""],
            ["", "", "https://a.example/4", "", "A word in the body: Zanzibarium. The lazy dog sleeps."],
            ["", "machine", "https://a.example/5", "", "京都の猫"],
        ]).await;
        for (query, expected) in [
            ("東京", &["1"][..]),
            ("検索", &["1"]),
            ("都の検", &["1"]),
            ("京都", &["1", "5"]),
            ("東京都 検索", &["1"]),
            ("\"都検\"", &[]),
            ("猫", &["5"]),
            ("の", &["1", "5"]),
            ("索", &["1"]),
            ("queue", &["2"]),
            ("クライアント", &["2"]),
            ("ｸﾗｲ", &["2"]),
            ("日本語", &["3"]),
            ("日記", &["3"]),
            ("zanzi", &["4"]),
            ("\"zanzi\"", &[]),
            ("\"lazy dog\"", &["4"]),
            ("\"dog lazy\"", &[]),
            ("#c++", &["2"]),
            ("#旅行 queue", &["2"]),
            ("#旅", &["2"]),
            ("#mach", &["5"]),
            ("#\"mach\"", &[]),
            ("#mach 京都", &[]),
            ("旅行", &["2"]),
            ("a.example", &["5", "4", "2", "1"]),
            ("https", &[]),
        ] {
            assert_eq!(library.numbers(query).await, expected, "{query}");
        }
        let long = "東".repeat(200);
        assert_eq!(library.numbers(&long).await, [""; 0]);
        assert_eq!(library.numbers(&"a ".repeat(100)).await, ["2", "5", "4", "1"]);
    }

    #[test]
    async fn a_pasted_address_finds_its_bookmark(library: Library) {
        library.add(library.person, &[
            ["", "", "https://example.test/1", "", ""],
            ["", "", "http://localhost:4811/articles/2", "", ""],
            ["", "", "http://127.0.0.1:4811/missing/3", "", ""],
            ["", "", "https://www.example.test/blog?page=2&part=/4", "", ""],
        ]).await;
        for (query, expected) in [
            ("https://example.test/", &["4", "1"][..]),
            ("http://www.example.test", &["4", "1"]),
            ("https://example.test/1?utm_source=mail#top", &["1"]),
            ("localhost:4811/articles/2", &["2"]),
            ("http://localhost:4811/", &["2"]),
            ("127.0.0.1:4811/missing", &["3"]),
            ("127.0.0.1", &["3"]),
            ("https://www.example.test/blog?page=2", &["4"]),
            ("https://other.test/1", &[]),
        ] {
            assert_eq!(library.numbers(query).await, expected, "{query}");
        }
    }

    #[test]
    async fn a_search_finds_only_the_own_bookmarks_that_exist(library: Library) {
        let other = Uuid::now_v7();
        library.person(other).await;
        library.add(library.person, &[["fox", "", "https://a.example/1", "", ""]]).await;
        // Somebody else's id as a word shows nothing of theirs.
        let named = format!("fox {}", library.person.simple());
        library.add(other, &[["fox", "", "https://a.example/2", "", ""], [&named, "", "https://a.example/3", "", ""]]).await;
        assert_eq!(library.numbers("fox").await, ["1"]);
        let mut pooled = library.database.connect().await.unwrap();
        bookmarks::delete_all(&mut pooled.connection(), library.person).await.unwrap();
        drop(pooled);
        assert_eq!(library.numbers("fox").await, [""; 0]);
        let found = library.found(other, "fox", Position::START, 9).await;
        assert_eq!(found.len(), 2);
    }

    /// No statement reads a table to its end, so a page costs what it shows and not what is stored.
    #[test]
    async fn list_and_search_read_an_index(library: Library) {
        let texts: Vec<[String; 2]> = (0..2_000)
            .map(|number| [format!("fox{} number", number % 200), format!("https://a.example/{number}")])
            .collect();
        let rows: Vec<Fields> = texts.iter().map(|[title, url]| [title.as_str(), "", url, "", "text"]).collect();
        library.add(library.person, &rows).await;
        let mut pooled = library.database.connect().await.unwrap();
        let query = Query::parse("fox7 num").unwrap();
        let explained = |sql: &str| AssertSqlSafe(format!("EXPLAIN {sql}"));
        match pooled.connection() {
            Either::Postgres(c) => {
                sqlx::query("ANALYZE").execute(&mut *c).await.unwrap();
                let [one, two, three, four, all] = query.levels(library.person, Query::tsquery);
                let find = sqlx::query_scalar(explained(POSTGRES)).bind(library.person).bind(all);
                let find = find.bind(one).bind(two).bind(three).bind(four).bind(0_i64).bind(Uuid::max());
                let find = find.bind(51_i64).bind(query.all_words(library.person));
                let plan: Vec<String> = find.fetch_all(&mut *c).await.unwrap();
                let plan = plan.join("\n");
                assert!(plan.contains("Bitmap Index Scan on bookmark_words_search"), "{plan}");
                assert!(!plan.contains("Seq Scan on bookmark"), "{plan}");
                let list = sqlx::query_scalar(explained(LIST)).bind(library.person);
                let plan: Vec<String> = list.bind(Uuid::max()).bind(51_i64).fetch_all(&mut *c).await.unwrap();
                let plan = plan.join("\n");
                assert!(plan.contains("Index Scan") && !plan.contains("Seq Scan on bookmark"), "{plan}");
                let waiting = sqlx::query_scalar(explained(WAITING)).bind(library.person).bind(120_i64);
                let plan: Vec<String> = waiting.fetch_all(&mut *c).await.unwrap();
                let plan = plan.join("\n");
                assert!(plan.contains("Index Scan") && !plan.contains("Seq Scan on bookmark"), "{plan}");
            }
            Either::Sqlite(c) => {
                let explained = |sql: &str| AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
                for sql in [SQLITE, LIST, WAITING] {
                    let plan: Vec<(i64, i64, i64, String)> = sqlx::query_as(explained(sql)).fetch_all(&mut *c).await.unwrap();
                    let plan: Vec<String> = plan.into_iter().map(|(.., step)| step).collect();
                    // An index of FTS5 is a virtual table that is "scanned" for a match: `0:M`.
                    let reads_all = |step: &&String| {
                        let is_small = matches!(step.as_str(), "SCAN matching" | "SCAN found" | "SCAN newest");
                        step.starts_with("SCAN") && !step.contains("VIRTUAL TABLE INDEX 0:M") && !is_small
                    };
                    assert_eq!(plan.iter().find(reads_all), None, "{plan:#?}");
                }
            }
        }
    }
}

/// Whether a page has a phrase takes reading its text, so only as many are asked as a page of results needs.
#[tokio::test]
async fn a_frequent_phrase_reads_the_text_of_one_page_of_results() {
    const CALLS: &str = "SELECT pg_stat_get_xact_function_calls('bookmark_all_words'::regproc)";
    let database = postgres::fresh_database().await;
    let library = Library::open(&database.url).await;
    library.add(library.person, &vec![["", "", "https://a.example", "", "the lazy dog"]; 300]).await;
    let mut open = library.database.begin().await.unwrap();
    let Either::Postgres(transaction) = &mut open else { unreachable!() };
    sqlx::query("SET LOCAL track_functions = 'pl'").execute(&mut **transaction).await.unwrap();
    let query = Query::parse("\"lazy dog\"").unwrap();
    let found = find(&mut open.connection(), library.person, &query, Position::START, 51).await.unwrap();
    assert_eq!(found.len(), 51);
    let Either::Postgres(transaction) = &mut open else { unreachable!() };
    let calls: i64 = sqlx::query_scalar(CALLS).fetch_one(&mut **transaction).await.unwrap();
    assert_eq!(calls, 51);
}

/// Deleted words do not stay in the index when a person is removed.
#[tokio::test]
async fn removed_words_leave_the_file() {
    let file = sqlite::fresh_file();
    let library = Library::open(&file.url).await;
    library.add(library.person, &[["a zanzibarium", "", "https://a.example/1", "", ""]]).await;
    let mut pooled = library.database.connect().await.unwrap();
    bookmarks::delete_all(&mut pooled.connection(), library.person).await.unwrap();
    forget_deleted(&mut pooled.connection()).await.unwrap();
    let Either::Sqlite(c) = pooled.connection() else { unreachable!() };
    sqlx::raw_sql("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, bookmark_words, row)")
        .execute(&mut *c)
        .await
        .unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM temp.terms").fetch_one(&mut *c).await.unwrap();
    assert_eq!(left, 0);
}
