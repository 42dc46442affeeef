use super::database::with_database;
use super::*;

#[test]
fn the_newest_binaries_are_chosen_and_the_old_refused() {
    let chosen = |found: &[(&str, &str)]| {
        let found = found.iter().map(|(folder, answer)| (PathBuf::from(folder), (*answer).to_owned()));
        choose(found)
    };
    let old = ("/a", "postgres (PostgreSQL) 13.22");
    let new = ("/b", "postgres (PostgreSQL) 17.2 (Debian 17.2-1)\n");
    let middle = ("/c", "postgres (PostgreSQL) 14.0");
    let beta = ("/d", "postgres (PostgreSQL) 19beta1");
    let other = ("/e", "postgres (Other) 99.1");
    assert_eq!(chosen(&[old, new, middle, other]), Some(PathBuf::from("/b")));
    assert_eq!(chosen(&[beta, new]), Some(PathBuf::from("/d")));
    assert_eq!(chosen(&[old, other]), None);
}

#[test]
fn missing_binaries_error_names_the_packages() {
    let said = ClusterError::NotFound.to_string();
    for needed in [
        "initdb, pg_basebackup, pg_ctl, postgres",
        "apt-get install postgresql",
        "cargo xtask test",
        SERVER_VARIABLE,
    ] {
        assert!(said.contains(needed), "{said}");
    }
}

#[test]
fn the_account_is_postgres_if_there_is_one_and_else_nobody() {
    let nobody = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533:nobody:/:/sbin/nologin\n";
    let account = |name, uid, gid| Some(Account { name, uid, gid });
    assert_eq!(Account::among(nobody), account("nobody", 65_534, 65_533));
    let both = format!("{nobody}postgres:x:101:104::/var/lib/postgresql:/bin/bash\n");
    assert_eq!(Account::among(&both), account("postgres", 101, 104));
    assert_eq!(Account::among("root:x:0:0:root:/root:/bin/sh\n"), None);
}

#[test]
fn url_database_is_replaced_and_the_rest_kept() {
    for (url, with) in [
        ("postgres://u:p%2F@h:5433/postgres", "postgres://u:p%2F@h:5433/new"),
        ("postgresql://h", "postgresql://h/new"),
        ("postgres://h/", "postgres://h/new"),
        ("postgres://h/a?sslmode=require&dbname=b&x=1", "postgres://h/new?sslmode=require&x=1"),
        ("postgres:///a?host=/run/pg", "postgres:///new?host=/run/pg"),
    ] {
        assert_eq!(with_database(url, "new").as_deref(), Some(with), "{url}");
    }
    for url in ["", "localhost:5432/a", "mysql://h/a", "host=localhost dbname=a"] {
        assert_eq!(with_database(url, "new"), None, "{url}");
    }
}

#[test]
fn taken_port_is_skipped() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken_port = taken.local_addr().unwrap().port();
    let ports = std::iter::once(taken_port).chain(free_ports());
    let cluster = Cluster::start_on(ports, &[]).unwrap();
    assert!(PORTS.contains(&cluster.port()));
}

#[test]
fn a_server_that_does_not_start_says_why_and_leaves_no_folder() {
    let error = Cluster::start(&[("shared_buffers", "much")]).unwrap_err();
    let ClusterError::Program { verb, log, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(verb, "start");
    assert!(log.contains("shared_buffers"), "{log}");
    let (_, rest) = log.split_once("configuration file \"").unwrap();
    let (folder, _) = rest.split_once("/data/postgresql.conf").unwrap();
    assert!(folder.contains("/ichido-pg-"), "{log}");
    assert!(!Path::new(folder).exists());
}
