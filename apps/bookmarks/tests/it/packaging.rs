//! The packaging files of Bookmarks name only commands, flags and variables that the program knows.
//!
//! Nothing here runs a container engine or systemd.

use std::process::Command;

use bookmarks::limits;
use ichido_store::testing::sqlite;

const UNIT: &str = include_str!("../../../../packaging/bookmarks.service");
const ICHIDO_UNIT: &str = include_str!("../../../../packaging/ichido.service");
const DOCKERFILE: &str = include_str!("../../../../packaging/bookmarks.Dockerfile");
const GUIDE: &str = include_str!("../../../../docs/guides/packaging.md");
const INSTALLED: &str = "/usr/local/bin/bookmarks";
const BUILT: &str = env!("CARGO_BIN_EXE_bookmarks");

/// Returns the help of a command line; `None` if the program does not know a part of it.
fn help(arguments: &[String]) -> Option<String> {
    let output = Command::new(BUILT).args(arguments).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Returns the settings with a name in the unit, in order.
fn settings<'a>(name: &str) -> Vec<&'a str> {
    let lines = UNIT.lines().filter_map(|line| line.split_once('='));
    lines.filter(|(key, _)| *key == name).map(|(_, value)| value).collect()
}

/// Returns the list after an instruction of the Dockerfile.
fn list(instruction: &str) -> Vec<String> {
    let lists: Vec<&str> = DOCKERFILE.lines().filter_map(|line| line.strip_prefix(instruction)).collect();
    let [list] = lists[..] else { panic!("{lists:?}") };
    serde_json::from_str(list).unwrap()
}

#[test]
fn bookmarks_unit_uses_valid_commands_and_variables() {
    let [start] = settings("ExecStart")[..] else { panic!("one command") };
    let start = words(start);
    assert_eq!(start[0], INSTALLED);
    let help = help(&start[1..]).unwrap();
    for variable in settings("Environment") {
        let (name, _) = variable.split_once('=').unwrap();
        assert!(help.contains(&format!("[env: {name}")), "{name}");
    }
    assert_eq!(settings("RestartPreventExitStatus"), ["2 5"], "a usage error, and a lost store");
    let stop: u64 = settings("TimeoutStopSec")[0].parse().unwrap();
    assert!(limits::DRAIN_WITHIN.as_secs() < stop);
}

/// Both units have the same restrictions.
#[test]
fn bookmarks_unit_is_sandboxed_like_ichidos() {
    let sandbox = |unit: &'static str| unit.split_once("\nLimitNOFILE=").unwrap().1;
    assert_eq!(sandbox(UNIT), sandbox(ICHIDO_UNIT));
    for (name, value) in
        [("User", "bookmarks"), ("StateDirectory", "bookmarks"), ("StateDirectoryMode", "0700")]
    {
        assert_eq!(settings(name), [value], "{name}");
    }
}

#[test]
fn bookmarks_container_uses_valid_commands_and_is_not_root() {
    assert_eq!(list("ENTRYPOINT "), [INSTALLED]);
    let command = list("CMD ");
    let help = help(&command).unwrap_or_else(|| panic!("{command:?}"));
    let store = DOCKERFILE.lines().find_map(|line| line.strip_prefix("ENV ")).unwrap();
    let (name, store) = store.split_once('=').unwrap();
    assert!(
        help.contains(&format!("[env: {name}")) && store.starts_with("sqlite:/var/lib/bookmarks/"),
        "{name}"
    );
    let user = DOCKERFILE.lines().rev().find_map(|line| line.strip_prefix("USER ")).unwrap();
    assert_ne!(user.split(':').next().unwrap().parse::<u32>().unwrap(), 0);
    assert!(
        DOCKERFILE.contains("--package bookmarks ")
            && DOCKERFILE.contains("COPY --from=build /src/target/dist/bookmarks ")
    );
    // The health check asks the service where it listens.
    assert!(
        command.iter().any(|word| word == "0.0.0.0:4190") && DOCKERFILE.contains("http://127.0.0.1:4190")
    );
}

#[test]
fn packaging_guide_runs_bookmarks_with_valid_commands() {
    let prefixes = [
        "sudo -u bookmarks bookmarks ",
        "ExecStart=/usr/local/bin/bookmarks ",
        "docker run --rm --volume bookmarks:/var/lib/bookmarks bookmarks ",
        "docker run --detach ",
    ];
    let lines: Vec<&str> = GUIDE
        .lines()
        .filter_map(|line| prefixes.iter().find_map(|prefix| line.strip_prefix(prefix)))
        .collect();
    assert_eq!(lines.len(), prefixes.len(), "{lines:?}");
    for line in lines {
        // The arguments of the container follow its image.
        let line = line.rsplit_once(" bookmarks ").map_or(line, |(_, arguments)| arguments);
        assert!(help(&words(line)).is_some(), "{line}");
    }
}

/// Where systemd is installed, it must accept the unit.
#[test]
fn systemd_verifies_the_bookmarks_unit() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else { return };
    assert!(version.status.success());
    // A folder of this test's own: systemd names a unit by its file.
    let file = sqlite::fresh_file();
    let folder = file.path().with_extension("units");
    std::fs::create_dir(&folder).unwrap();
    let unit = folder.join("bookmarks.service");
    std::fs::write(&unit, UNIT.replace(INSTALLED, BUILT)).unwrap();
    let judged = Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let printed = String::from_utf8_lossy(&judged.stderr);
    let about = printed.lines().filter(|line| line.contains("bookmarks.service")).collect::<Vec<_>>();
    assert_eq!(about, [""; 0], "{printed}");
}
