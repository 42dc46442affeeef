//! Packaging files name only commands, flags and variables that the program knows.
//!
//! Nothing here runs a container engine or systemd.

use std::process::Command;

use crate::folder;
use crate::serve::program::ichido;

const UNIT: &str = include_str!("../../../../../packaging/ichido.service");
const DOCKERFILE: &str = include_str!("../../../../../packaging/Dockerfile");
const IGNORED: &str = include_str!("../../../../../packaging/Dockerfile.dockerignore");
const BOOKMARKS: &str = include_str!("../../../../../packaging/bookmarks.Dockerfile");
const COMPOSE: &str = include_str!("../../../../../packaging/compose.yaml");
const GUIDE: &str = include_str!("../../../../../docs/guides/packaging.md");
const PROGRAM: &str = "/usr/local/bin/ichido";

/// Returns the help of a command line; `None` if the program does not know a part of it.
fn help(arguments: &[String]) -> Option<String> {
    let folder = folder::fresh();
    let output = ichido(folder.path()).args(arguments).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Returns the list after a word in a line of a file.
fn list(text: &str, before: &str) -> Vec<Vec<String>> {
    let lists = text.lines().filter_map(|line| line.trim().split_once(before)).map(|(_, list)| list);
    lists.map(|list| serde_json::from_str(list.trim()).unwrap()).collect()
}

/// Returns the settings with a name in the unit, in order.
fn settings<'a>(name: &str) -> Vec<&'a str> {
    let lines = UNIT.lines().filter_map(|line| line.split_once('='));
    lines.filter(|(key, _)| *key == name).map(|(_, value)| value).collect()
}

/// Returns the seconds of a commented setting in the file that `config init` writes.
fn seconds(default: &str, name: &str) -> u64 {
    let line = default.lines().find_map(|line| line.strip_prefix(&format!("#{name} = \""))).unwrap();
    line.trim_end_matches("s\"").parse().unwrap()
}

#[test]
fn unknown_flags_and_commands_are_detected() {
    assert!(help(&words("serve --listen 0.0.0.0:4180")).is_some());
    assert!(help(&words("serve --lissten 0.0.0.0:4180")).is_none());
    assert!(help(&words("serve --listen everywhere")).is_none());
    assert!(help(&words("healthcheque")).is_none());
}

#[test]
fn systemd_unit_uses_valid_commands_and_sandboxing() {
    let lines: Vec<&str> = [settings("ExecStartPre"), settings("ExecStart")].concat();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let line = words(line);
        assert_eq!(line[0], PROGRAM);
        assert!(help(&line[1..]).is_some(), "{line:?}");
    }
    let serve = help(&words("serve")).unwrap();
    for variable in settings("Environment") {
        let (name, _) = variable.split_once('=').unwrap();
        assert!(serve.contains(&format!("[env: {name}")), "{name}");
    }
    for (name, value) in [
        ("User", "ichido"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("CapabilityBoundingSet", ""),
        ("StateDirectory", "ichido"),
    ] {
        assert_eq!(settings(name), [value], "{name}");
    }
}

/// A process that is killed before it has stopped leaves unknown effects.
#[test]
fn stop_timeout_exceeds_the_drain_timeouts() {
    let output = ichido(folder::fresh().path()).args(["config", "init", "-"]).output().unwrap();
    let default = String::from_utf8(output.stdout).unwrap();
    let needed = seconds(&default, "drain_timeout") + seconds(&default, "stop_timeout");
    let unit: u64 = settings("TimeoutStopSec")[0].parse().unwrap();
    let compose = COMPOSE.lines().find_map(|line| line.trim().strip_prefix("stop_grace_period: ")).unwrap();
    let compose: u64 = compose.trim_end_matches('s').parse().unwrap();
    assert!(needed < unit && needed < compose, "{needed} {unit} {compose}");
}

#[test]
fn container_uses_valid_commands_and_is_not_root() {
    assert_eq!(list(DOCKERFILE, "ENTRYPOINT "), [[PROGRAM]]);
    let commands = list(&DOCKERFILE.replace("HEALTHCHECK", "\nHEALTHCHECK"), "CMD ");
    assert_eq!(commands.len(), 2, "a health check and its own command");
    for command in commands {
        let arguments = if command[0] == PROGRAM { &command[1..] } else { &command };
        assert!(help(arguments).is_some(), "{command:?}");
    }
    let user = DOCKERFILE.lines().rev().find_map(|line| line.strip_prefix("USER ")).unwrap();
    let id: u32 = user.split(':').next().unwrap().parse().unwrap();
    assert_ne!(id, 0);
    assert!(
        DOCKERFILE.contains("--package ichido-cli")
            && DOCKERFILE.contains("COPY --from=build /src/target/dist/ichido ")
    );
}

/// The image can call models on Bedrock, and holds no secrets of the folder it was built in.
// Spec: B5.
#[test]
fn container_image_has_bedrock_and_no_env_file() {
    let build = DOCKERFILE.lines().find(|line| line.starts_with("RUN cargo build ")).unwrap();
    assert!(build.contains(" --package ichido-cli --features bedrock "), "{build}");
    let manifest = include_str!("../../../Cargo.toml");
    assert!(manifest.lines().any(|line| line.starts_with("bedrock = ")), "the feature exists");
    assert!(IGNORED.lines().any(|line| line == "**/.env"), "{IGNORED}");
}

/// The rest of this file is tested with Bookmarks itself.
#[test]
fn bookmarks_container_checks_its_health_with_ichido() {
    let check = BOOKMARKS.lines().find(|line| line.starts_with("HEALTHCHECK ")).unwrap();
    let [command] = &list(check, "CMD ")[..] else { panic!("{check}") };
    assert_eq!(command[0], PROGRAM);
    assert!(help(&command[1..]).is_some(), "{command:?}");
    assert!(
        BOOKMARKS.contains("--package ichido-cli")
            && BOOKMARKS.contains("COPY --from=build /src/target/dist/ichido /usr/local/bin/ichido")
    );
}

#[test]
fn compose_file_uses_valid_commands_and_read_only_files() {
    let (_, service) = COMPOSE.split_once("\n  ichido:\n").unwrap();
    let commands = list(service, "command: ");
    assert_eq!(commands.len(), 1);
    assert!(help(&commands[0]).is_some(), "{commands:?}");
    let checks = list(service, "test: ");
    assert_eq!((checks.len(), &checks[0][..2]), (1, &["CMD".to_owned(), PROGRAM.to_owned()][..]));
    assert!(help(&checks[0][2..]).is_some(), "{checks:?}");
    let serve = help(&words("serve")).unwrap();
    for name in ["ICHIDO_STORE", "ICHIDO_CONFIG"] {
        assert!(service.contains(&format!("{name}: ")) && serve.contains(&format!("[env: {name}")), "{name}");
    }
    assert!(service.contains("\n    read_only: true\n") && service.contains("cap_drop: [ALL]"));
    // The health check asks the server where it listens.
    assert!(
        commands[0].iter().any(|word| word == "0.0.0.0:4180")
            && checks[0].iter().any(|word| word.ends_with(":4180"))
    );
}

#[test]
fn packaging_guide_uses_valid_commands() {
    let shell = GUIDE.split("```sh\n").skip(1).flat_map(|block| block.split("\n```").next().unwrap().lines());
    let prefixes = [
        "sudo -u ichido ichido ",
        "sudo /usr/local/bin/ichido ",
        "docker compose run --rm ichido ",
        "ichido ",
    ];
    let lines: Vec<&str> =
        shell.filter_map(|line| prefixes.iter().find_map(|prefix| line.strip_prefix(prefix))).collect();
    assert_eq!(lines.len(), 9, "{lines:?}");
    for line in lines {
        assert!(help(&words(line)).is_some(), "{line}");
    }
}

/// Where systemd is installed, it must accept the unit.
#[test]
fn systemd_verifies_the_unit() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else { return };
    assert!(version.status.success());
    let folder = folder::fresh();
    // It looks for the program, which may be missing at the unit's path on a test machine.
    let unit = UNIT.replace(PROGRAM, env!("CARGO_BIN_EXE_ichido"));
    let file = folder.write("ichido.service", &unit);
    let judged = Command::new("systemd-analyze").arg("verify").arg(&file).output().unwrap();
    let printed = String::from_utf8_lossy(&judged.stderr);
    let about = printed.lines().filter(|line| line.contains("ichido.service")).collect::<Vec<_>>();
    assert_eq!(about, [""; 0], "{printed}");
}
