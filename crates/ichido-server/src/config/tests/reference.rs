//! The reference of all settings in `docs/configuration.md`.

use std::fmt::Write as _;
use std::path::Path;

use super::super::kind::Kind;
use super::super::setting::{Absent, Setting, SettingTable};
use super::super::table::ROOT;

/// Everything after this line in the file is generated.
const MARK: &str =
    "<!-- Generated from the table of settings: ICHIDO_BLESS=1 cargo test -p ichido-server reference -->\n";

/// Formats every setting, by table.
pub(super) fn reference() -> String {
    let mut out = String::new();
    for section in ROOT.iter().copied().flatten() {
        let Setting { name, kind, about, .. } = section;
        match kind {
            Kind::Table(table) => chapter(&mut out, &format!("## `[{name}]`"), about, table),
            Kind::Named(named) => {
                let [first, ..] = named.variants else { continue };
                if first.word.is_empty() {
                    let fallback = named.fallback.unwrap_or_default();
                    let about =
                        format!("{about} The settings of `[{fallback}]` are here too, for one queue.");
                    let own: Vec<_> =
                        first.table.iter().copied().filter(|group| !is_of(fallback, group)).collect();
                    chapter(&mut out, &format!("## `[{name}.NAME]`"), &about, &own);
                    continue;
                }
                // The first groups are common to all kinds.
                let shared = first.table.len() - 1;
                chapter(&mut out, &format!("## `[{name}.NAME]`"), about, &first.table[..shared]);
                for variant in named.variants {
                    let heading = format!("### `kind = \"{}\"`", variant.word);
                    match variant.presets {
                        None => chapter(&mut out, &heading, "", &variant.table[shared..]),
                        Some(_) => chapter(&mut out, &heading, MOCK, &[]),
                    }
                }
            }
            _ => panic!("{name} is not a table"),
        }
    }
    out
}

const MOCK: &str = "The settings of `kind = \"http\"`, with the defaults of the mock broker: `url` is `http://127.0.0.1:8090/orders`, `guarantee` is `keyed` for `365d`, and `rules`, `reconcile`, `receipt_pointer`, `echoes_key` and `settle_grace` match its responses. `ichido config show` prints them.";

/// Whether a group of settings belongs to a top-level table.
fn is_of(section: &str, group: &[Setting]) -> bool {
    let section = ROOT.iter().copied().flatten().find(|setting| setting.name == section);
    section.is_some_and(
        |section| matches!(section.kind, Kind::Table(table) if table.iter().any(|own| is_same(own, group))),
    )
}

fn is_same(one: &[Setting], other: &[Setting]) -> bool {
    one.iter()
        .map(|setting| (setting.name, setting.about))
        .eq(other.iter().map(|setting| (setting.name, setting.about)))
}

fn chapter(out: &mut String, heading: &str, about: &str, groups: &[&'static [Setting]]) {
    _ = write!(out, "\n{heading}\n\n");
    if !about.is_empty() {
        _ = writeln!(out, "{about}");
    }
    if groups.is_empty() {
        return;
    }
    if !about.is_empty() {
        out.push('\n');
    }
    *out += "| setting | value | default | meaning |\n|---|---|---|---|\n";
    let mut seen: Vec<&'static [Setting]> = Vec::new();
    rows(out, "", groups, &mut seen);
}

/// Writes a row for each setting and nested setting, except repeated ones.
fn rows(out: &mut String, prefix: &str, groups: &[&'static [Setting]], seen: &mut Vec<&'static [Setting]>) {
    for group in groups {
        if seen.iter().any(|seen| is_same(seen, group)) {
            continue;
        }
        seen.push(group);
        for setting in *group {
            row(out, prefix, setting);
            let (inside, tables): (String, Vec<SettingTable>) = match &setting.kind {
                Kind::Table(table) | Kind::FlagOr(table) | Kind::WordOr(_, table) => {
                    (format!("{prefix}{}.", setting.name), vec![*table])
                }
                Kind::Rows(table) => (format!("{prefix}{}[].", setting.name), vec![*table]),
                Kind::Named(named) => (
                    format!("{prefix}{}.NAME.", setting.name),
                    named.variants.iter().map(|variant| variant.table).collect(),
                ),
                _ => continue,
            };
            for table in tables {
                rows(out, &inside, table, seen);
            }
        }
    }
}

fn row(out: &mut String, prefix: &str, setting: &Setting) {
    let default = match setting.absent {
        Absent::AtMost(other, _) => format!("`{}`, or `{other}` if that is shorter", setting.example()),
        Absent::AtLeast(other, _) => format!("`{}`, or `{other}` if that is longer", setting.example()),
        Absent::Is(_) | Absent::Members => format!("`{}`", setting.example()),
        Absent::Unset(_) => "unset".to_owned(),
        Absent::Required(_) => "required".to_owned(),
    };
    let value = match &setting.kind {
        Kind::Reference => "a string, or a reference to one".to_owned(),
        Kind::References => "a list of strings, or of references to them".to_owned(),
        Kind::Named(_) => "tables".to_owned(),
        kind => kind.expected(),
    };
    let name = format!("{prefix}{}", setting.name);
    _ = writeln!(out, "| `{name}` | {value} | {default} | {} |", setting.description());
}

#[test]
fn the_documented_reference_matches_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let checked_in = std::fs::read_to_string(&file).expect("docs/configuration.md is there");
    let (before, generated) = checked_in.split_once(MARK).expect("it says where it is generated");
    if std::env::var_os("ICHIDO_BLESS").is_some() {
        std::fs::write(&file, format!("{before}{MARK}{}", reference())).expect("it can be written");
        return;
    }
    assert!(
        generated == reference(),
        "docs/configuration.md is out of date; regenerate it with ICHIDO_BLESS=1 cargo test -p ichido-server reference"
    );
}
