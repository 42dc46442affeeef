//! PostgreSQL for tests: durable, separate, restartable, and removed afterwards.

use std::collections::HashSet;
use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ichido_store::testing::postgres::{
    Cluster, ClusterError, NEW_FILES_VARIABLE, PgTestDatabase, SERVER_VARIABLE, StopMode, TEMPLATE_VARIABLE,
    durable_database, empty_database, fresh_database,
};
use sqlx::{Connection as _, PgConnection};

/// Set for a copy of this test binary that one of the tests starts; without it the copies' parts do nothing.
const COPY_VARIABLE: &str = "ICHIDO_TEST_COPY";
/// How often to check a condition, 5 ms apart, before giving up.
const MAX_SAMPLES: u32 = 12_000;

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

async fn run(connection: &mut PgConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

async fn ask(url: &str, sql: &'static str) -> String {
    let mut connection = connect(url).await;
    sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..MAX_SAMPLES {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never so: {what}");
}

/// Reads the server's process id from its lock file.
fn server_of(folder: &Path) -> String {
    let lock = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    lock.lines().next().unwrap().to_owned()
}

/// Returns whether a process still runs. A process that has ended stays listed until its parent, here init, reaps it.
fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("status"));
    status.is_ok_and(|status| !status.contains("\nState:\tZ"))
}

fn signal(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
}

#[tokio::test]
async fn commit_is_durable_before_its_response() {
    let cluster = Cluster::start(&[]).unwrap();
    let database = cluster.database().await.unwrap();
    assert_eq!(ask(&database.url, "SHOW fsync").await, "on");
    assert_eq!(ask(&database.url, "SHOW synchronous_commit").await, "on");
    assert_eq!(ask(&database.url, "SHOW full_page_writes").await, "on");
    assert_eq!(ask(&database.url, "SHOW server_encoding").await, "UTF8");
}

#[tokio::test]
async fn two_fresh_databases_are_apart() {
    let (one, other) = (fresh_database().await, fresh_database().await);
    run(&mut connect(&one.url).await, "CREATE TABLE t (x int)").await;
    run(&mut connect(&other.url).await, "CREATE TABLE t (x int)").await;
    run(&mut connect(&one.url).await, "INSERT INTO t VALUES (1)").await;
    assert_eq!(ask(&one.url, "SELECT count(*)::text FROM t").await, "1");
    assert_eq!(ask(&other.url, "SELECT count(*)::text FROM t").await, "0");
}

#[test]
fn many_tests_get_their_databases_at_once() {
    let fresh = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let database = fresh_database().await;
            assert_eq!(ask(&database.url, "SELECT current_database()::text").await, database.name);
            database.name.clone()
        })
    };
    let names: HashSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..32).map(|_| scope.spawn(fresh)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(names.len(), 32);
}

#[tokio::test(start_paused = true)]
async fn paused_clock_does_not_block() {
    let database = fresh_database().await;
    assert_eq!(ask(&database.url, "SELECT 'here'").await, "here");
}

#[tokio::test]
async fn the_server_runs_as_an_ordinary_user_and_on_loopback_only() {
    let cluster = Cluster::start(&[]).unwrap();
    let server = Path::new("/proc").join(server_of(cluster.folder()));
    assert_ne!(server.metadata().unwrap().uid(), 0);
    assert_eq!(cluster.folder().metadata().unwrap().mode() & 0o777, 0o700);
    let url = cluster.url("postgres");
    assert_eq!(ask(&url, "SHOW listen_addresses").await, "127.0.0.1");
    // Root's groups are dropped too.
    let status = std::fs::read_to_string(server.join("status")).unwrap();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
    assert!(!groups.split_whitespace().any(|group| group == "0"), "{groups}");
}

#[tokio::test]
async fn settings_apply_except_guaranteed_ones() {
    let settings = [
        ("application_name", r"it's a \ sign"),
        ("max_connections", "17"),
        ("fsync", "off"),
        ("listen_addresses", "*"),
    ];
    let cluster = Cluster::start(&settings).unwrap();
    let url = cluster.url("postgres");
    assert_eq!(ask(&url, "SHOW application_name").await, r"it's a \ sign");
    assert_eq!(ask(&url, "SHOW max_connections").await, "17");
    assert_eq!(ask(&url, "SHOW fsync").await, "on");
    assert_eq!(ask(&url, "SHOW listen_addresses").await, "127.0.0.1");
}

#[tokio::test]
async fn an_immediate_restart_comes_back_on_the_same_port_with_what_was_committed() {
    let cluster = Cluster::start(&[]).unwrap();
    let database = cluster.database().await.unwrap();
    let mut before = connect(&database.url).await;
    run(&mut before, "CREATE TABLE t (x int); INSERT INTO t VALUES (1)").await;
    run(&mut before, "BEGIN; INSERT INTO t VALUES (2)").await;
    let (port, server) = (cluster.port(), server_of(cluster.folder()));

    cluster.restart_immediate().unwrap();

    assert!(sqlx::raw_sql("COMMIT").execute(&mut before).await.is_err());
    assert_ne!(server_of(cluster.folder()), server);
    assert_eq!(cluster.port(), port);
    assert_eq!(ask(&database.url, "SELECT count(*)::text FROM t").await, "1");
    let log = std::fs::read_to_string(cluster.folder().join("server.log")).unwrap();
    assert!(log.contains("was not properly shut down"), "{log}");
}

#[tokio::test]
async fn a_stopped_server_refuses_and_comes_back_when_started_again() {
    let cluster = Cluster::start(&[]).unwrap();
    let database = cluster.database().await.unwrap();
    for how in [StopMode::Fast, StopMode::Immediate] {
        cluster.stop(how).unwrap();
        assert!(PgConnection::connect(&database.url).await.is_err());
        // Twice is a mistake in the test, and is reported.
        assert!(matches!(cluster.stop(how), Err(ClusterError::Program { .. })));
        cluster.start_again().unwrap();
        assert_eq!(ask(&database.url, "SELECT 'back'").await, "back");
    }
    // A stopped cluster can be dropped as well.
    cluster.stop(StopMode::Fast).unwrap();
    let folder = cluster.folder().to_owned();
    drop(cluster);
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_test_that_panics_leaves_no_server_and_no_folder() {
    let test = std::thread::spawn(|| {
        let cluster = Cluster::start(&[]).unwrap();
        let folder = cluster.folder().to_owned();
        std::panic::panic_any((server_of(&folder), folder));
    });
    let panicked = test.join().unwrap_err();
    let (server, folder) = panicked.downcast_ref::<(String, PathBuf)>().unwrap();
    assert!(!folder.exists());
    until("the server is gone", || !runs(server)).await;
}

#[tokio::test]
async fn frozen_server_is_stopped_too() {
    let cluster = Cluster::start(&[]).unwrap();
    let (server, folder) = (server_of(cluster.folder()), cluster.folder().to_owned());
    signal("-STOP", &server);
    drop(cluster);
    assert!(!folder.exists());
    until("the server is gone", || !runs(&server)).await;
}

/// Returns a command that runs one part of this binary in a copy.
fn copy(part: &str) -> Command {
    let part = format!("postgres_for_tests::{part}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &part, "--ignored", "--nocapture"])
        .env(COPY_VARIABLE, "yes")
        .env_remove(SERVER_VARIABLE)
        .env_remove(TEMPLATE_VARIABLE)
        .env_remove(NEW_FILES_VARIABLE)
        .stdout(Stdio::piped());
    command
}

fn is_copy() -> bool {
    std::env::var_os(COPY_VARIABLE).is_some()
}

fn said_after(copy: &mut Child, word: &str) -> String {
    let lines = BufReader::new(copy.stdout.as_mut().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    lines.find_map(|line| line.split_once(word).map(|(_, rest)| rest.to_owned())).unwrap()
}

#[tokio::test]
async fn a_killed_process_leaves_no_server_and_no_folder() {
    let mut copy = copy("part_with_clusters_until_killed").spawn().unwrap();
    let said = said_after(&mut copy, "clusters:");
    let folders: Vec<PathBuf> = said.split_whitespace().map(PathBuf::from).collect();
    let servers: Vec<String> = folders.iter().map(|folder| server_of(folder)).collect();
    assert_eq!(folders.len(), 2);
    assert!(servers.iter().all(|server| runs(server)));

    // Child::kill is SIGKILL.
    copy.kill().unwrap();
    copy.wait().unwrap();

    until("the servers are gone", || !servers.iter().any(|server| runs(server))).await;
    until("the folders are gone", || !folders.iter().any(|folder| folder.exists())).await;
}

/// Two clusters, because a watcher or a server that inherited the other's pipe would keep it open.
#[tokio::test]
#[ignore = "a part of a_killed_process_leaves_no_server_and_no_folder"]
async fn part_with_clusters_until_killed() {
    if !is_copy() {
        return;
    }
    let (one, other) = (Cluster::start(&[]).unwrap(), Cluster::start(&[]).unwrap());
    println!("clusters:{} {}", one.folder().display(), other.folder().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_process_killed_while_its_server_starts_leaves_nothing_either() {
    // From the beginning of `initdb` to the end of the start.
    for sign in [".", "data", "data/base", "data/postgresql.conf", "server.log", "data/postmaster.pid"] {
        let temp = tempfolder();
        let mut copy = copy("part_with_clusters_until_killed");
        let mut copy = copy.env("TMPDIR", &temp).spawn().unwrap();
        until(sign, || {
            let folders = std::fs::read_dir(&temp).unwrap().flatten();
            folders.map(|folder| folder.path().join(sign)).any(|path| path.exists())
        })
        .await;
        copy.kill().unwrap();
        copy.wait().unwrap();
        until("no watcher and no server is left", || !is_named(&temp)).await;
        assert_eq!(entries(&temp), 0, "{sign}");
        std::fs::remove_dir(&temp).unwrap();
    }
}

fn tempfolder() -> PathBuf {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let number = RandomState::new().build_hasher().finish();
    let folder = std::env::temp_dir().join(format!("ichido-t-{number:x}"));
    std::fs::create_dir(&folder).unwrap();
    // Like /tmp, because the server's user has to create and remove folders in it.
    std::fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
    folder
}

/// Returns whether a process has this path, or one below it, on its command line.
fn is_named(path: &Path) -> bool {
    let path = path.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(path))
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[tokio::test]
async fn the_shared_server_ends_with_its_process() {
    let mut copy = copy("part_with_the_shared_server").spawn().unwrap();
    let folder = PathBuf::from(said_after(&mut copy, "shared:"));
    // The copy's output ends with the copy: no server and no watcher holds it open.
    let output = copy.wait_with_output().unwrap();
    assert!(output.status.success());
    until("the folder is gone", || !folder.exists()).await;
}

#[tokio::test]
#[ignore = "a part of the_shared_server_ends_with_its_process"]
async fn part_with_the_shared_server() {
    if is_copy() {
        let database = fresh_database().await;
        println!("shared:{}", ask(&database.url, "SHOW unix_socket_directories").await);
    }
}

#[tokio::test]
async fn a_run_shares_a_server_and_copies_its_template() {
    let shared = Cluster::start_shared().unwrap();
    let template = shared.template().await.unwrap();
    assert_eq!(ask(&shared.url("postgres"), "SHOW fsync").await, "off");
    let mut copy = copy("part_with_a_template");
    copy.env(SERVER_VARIABLE, shared.url("postgres")).env(TEMPLATE_VARIABLE, template);
    copy.env(NEW_FILES_VARIABLE, shared.new_files());
    let copy = copy.output().unwrap();
    assert!(copy.status.success(), "{}", String::from_utf8_lossy(&copy.stdout));
}

#[tokio::test]
#[ignore = "a part of a_run_shares_a_server_and_copies_its_template"]
async fn part_with_a_template() {
    const TABLES: &str = "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'ichido'";
    // `initdb` draws it.
    const ORIGIN: &str = "SELECT system_identifier::text FROM pg_control_system()";
    if !is_copy() {
        return;
    }
    let (fresh, empty) = (fresh_database().await, empty_database().await);
    assert_ne!(ask(&fresh.url, TABLES).await, "0", "a store finds its tables there");
    assert_eq!(ask(&empty.url, TABLES).await, "0");
    let durable = durable_database().await;
    assert_eq!(ask(&durable.url, "SHOW fsync").await, "on", "a server of its own");
    assert_eq!(ask(&durable.url, ORIGIN).await, ask(&fresh.url, ORIGIN).await, "and of the same files");
    assert_eq!(ask(&durable.url, TABLES).await, "0");
}

#[tokio::test]
async fn a_given_server_is_used_and_left_as_it_was() {
    let given = Cluster::start(&[]).unwrap();
    let mut copy = copy("part_with_a_given_server");
    let copy = copy.env(SERVER_VARIABLE, given.url("postgres")).output().unwrap();
    let said = String::from_utf8_lossy(&copy.stdout);
    assert!(copy.status.success(), "{said}");
    assert!(said.contains(&format!("port:{}\n", given.port())), "{said}");
    let count = "SELECT count(*)::text FROM pg_database WHERE datname LIKE 'ichido\\_test\\_%'";
    assert_eq!(ask(&given.url("postgres"), count).await, "0");
}

#[tokio::test]
#[ignore = "a part of a_given_server_is_used_and_left_as_it_was"]
async fn part_with_a_given_server() {
    if !is_copy() {
        return;
    }
    let (one, other) = (fresh_database().await, fresh_database().await);
    assert_ne!(one.name, other.name);
    println!("port:{}", ask(&one.url, "SHOW port").await);
    assert_eq!(ask(&one.url, "SELECT current_database()::text").await, one.name);
    // Neither an open session nor a panic keeps the database.
    let mut open = connect(&other.url).await;
    run(&mut open, "CREATE TABLE t (x int)").await;
    let panicked = tokio::spawn(async move { panics_with(other) }).await;
    assert!(panicked.unwrap_err().is_panic());
    assert!(sqlx::raw_sql("SELECT 1").execute(&mut open).await.is_err());
}

fn panics_with(database: PgTestDatabase) {
    let _kept = database;
    panic!("as meant");
}

#[tokio::test]
async fn wrong_url_error_hides_the_password() {
    let mut copy = copy("part_with_a_given_server");
    copy.env(SERVER_VARIABLE, "mysql://u:hunter2@localhost/a");
    let copy = copy.stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&copy.stderr);
    assert!(!copy.status.success());
    assert!(said.contains("ICHIDO_TEST_POSTGRES is not a URL"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn inaccessible_temporary_folder_is_reported() {
    let folder = tempfolder();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let mut copy = copy("part_with_the_shared_server");
    let copy = copy.env("TMPDIR", &folder).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&copy.stderr);
    // Only root runs the server as another user.
    if folder.metadata().unwrap().uid() == 0 {
        assert!(!copy.status.success());
        assert!(said.contains("set TMPDIR to a folder that all users can write to"), "{said}");
    } else {
        assert!(copy.status.success(), "{said}");
    }
    until("the folder is empty", || entries(&folder) == 0).await;
    std::fs::remove_dir(&folder).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_are_on_the_promoted_standby() {
    let primary = Cluster::start(&[Cluster::SYNCHRONOUS]).unwrap();
    let standby = primary.standby().unwrap();
    // The first write: it waits until the standby follows.
    let database = primary.database().await.unwrap();
    run(&mut connect(&database.url).await, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)").await;
    assert_eq!(ask(&standby.url("postgres"), "SELECT pg_is_in_recovery()::text").await, "true");
    primary.kill().unwrap();
    standby.promote().unwrap();
    assert!(PgConnection::connect(&database.url).await.is_err(), "the first is gone");
    let there = standby.url(&database.name);
    run(&mut connect(&there).await, "INSERT INTO kept VALUES (2)").await;
    assert_eq!(ask(&there, "SELECT sum(n)::text FROM kept").await, "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_standby_is_gone_acknowledges_nothing() {
    let primary = Cluster::start(&[Cluster::SYNCHRONOUS]).unwrap();
    let standby = primary.standby().unwrap();
    let database = primary.database().await.unwrap();
    let mut writer = connect(&database.url).await;
    standby.kill().unwrap();
    let writing = tokio::spawn(async move { run(&mut writer, "CREATE TABLE kept ()").await });
    let waits = "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while ask(&database.url, waits).await != "1" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!writing.is_finished());
    assert_eq!(ask(&database.url, "SELECT coalesce(to_regclass('kept')::text, 'none')").await, "none");
    writing.abort();
}
