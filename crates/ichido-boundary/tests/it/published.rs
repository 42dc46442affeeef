//! The files in `docs` match the code.
//!
//! `UPDATE_DOCS=1 cargo test -p ichido-boundary --test it published` rewrites them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ichido_boundary::{Boundary, Member, Name, STARTING, STARTING_README, Schema, check, rules, schema};
use serde_json::{Map, Value, json};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares a file of `docs` with its expected contents, or writes it on request.
#[track_caller]
fn published(file: &str, expected: &str) {
    let path = docs().join(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let found = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let hint = "run `UPDATE_DOCS=1 cargo test -p ichido-boundary --test it published`";
    assert!(found == expected, "docs/{file} differs from the code; {hint}");
}

#[test]
fn each_rule_has_its_page() {
    for rule in rules() {
        published(&format!("rules/{}.md", rule.id), rule.page);
    }
}

#[test]
fn each_page_has_a_rule_and_the_list_is_complete() {
    let mut list = String::from(
        "# Rules of `ichido check`\n\n\
         Each page says why the rule exists, how to fix a finding, and shows an example that the tests run.\n\n\
         | rule | severity | requirement |\n|---|---|---|\n",
    );
    for rule in rules() {
        let (id, severity) = (rule.id, rule.severity.as_str());
        _ = writeln!(list, "| [{id}]({id}.md) | {severity} | {} |", rule.title);
    }
    published("rules/README.md", &list);
    let expected: BTreeSet<String> =
        rules().map(|rule| format!("{}.md", rule.id)).chain(["README.md".to_owned()]).collect();
    let folder = std::fs::read_dir(docs().join("rules")).expect("the folder is there");
    let found: BTreeSet<String> = folder
        .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn published_schema_matches_the_model() {
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    document.insert("title".to_owned(), json!("A boundary file of Ichido"));
    document.insert("required".to_owned(), json!(["boundary"]));
    document.extend(schema_of(&schema()));
    let text = serde_json::to_string_pretty(&document).expect("a value has a text");
    published("boundary.schema.json", &format!("{text}\n"));
}

#[test]
fn published_table_matches_the_model() {
    let mut page = String::from(MEMBERS_HEAD);
    list_members("", &schema(), &mut page);
    published("boundary-files.md", &format!("{page}{}", by_hand()));
}

/// The end of the page, which is written by hand.
fn by_hand() -> String {
    let page = std::fs::read_to_string(docs().join("boundary-files.md")).expect("it is readable");
    let start = page.find("\n## A complete hop chain").expect("the section is there");
    page[start..].to_owned()
}

/// A file without its comments. No text in the example contains `//`.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[test]
fn documented_hop_chain_has_no_findings() {
    let page = by_hand();
    let texts: Vec<&str> =
        page.split("```jsonc\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    let read = |text: &&str| {
        let boundary = Boundary::read("example.json", without_comments(text).as_bytes());
        let boundary = boundary.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(boundary.unknown_members(), [""; 0], "{}", boundary.name());
        boundary
    };
    let files: Vec<Boundary> = texts.iter().map(read).collect();
    assert_eq!(files.iter().map(Boundary::name).collect::<Vec<_>>(), Name::ALL);
    assert_eq!(check(&files), []);
}

const MEMBERS_HEAD: &str = "# Boundary files, member by member

A boundary file is a JSON file about one boundary between a sender and a receiver. `browser_to_bff` is between the
browser and the BFF, and so on; `adapter` is between the adapter and the service with the side effect. Retries and
timeouts in a file apply to the sender, and keys to the receiver. Each list of headers applies to the party that its
direction names: `bff_outbound` to the BFF when it sends, plain `inbound` to the receiver. Plain `outbound` is the
sender's, but in `browser_to_bff` it is what the BFF answers with, because no proxy handles what leaves a browser.

`ichido check --init` writes a starting set into the current folder, and `ichido check .` checks it
([guide](guides/check-boundaries.md)). `ichido proxy --boundary FILE` runs on the same files. It uses those in which its
role receives or sends, and does not start if one of them has errors ([guide](guides/run-proxies.md)).

Unknown members are ignored, except in `encoding/rules`, where they could change which bodies are equal. The table
gives the default of a member that may be missing, and [the rules](rules/README.md) say which members are required.
`*` is a name of your own.

| member | value | meaning |
|---|---|---|
";

fn list_members(pointer: &str, schema: &Schema, page: &mut String) {
    match schema {
        Schema::Object(members) | Schema::Flattened(members) => {
            for member in members {
                let pointer = format!("{pointer}/{}", member.name);
                let doc = member.doc.replace('|', "\\|");
                _ = writeln!(page, "| `{pointer}` | {} | {doc} |", in_words(&member.schema));
                list_members(&pointer, &member.schema, page);
            }
        }
        Schema::Map { members, others } => {
            list_members(pointer, &Schema::Object(members.clone()), page);
            list_members(&format!("{pointer}/*"), others, page);
        }
        Schema::Array(inside) => list_members(pointer, inside, page),
        Schema::AnyOf(schemas) => schemas.iter().for_each(|schema| list_members(pointer, schema, page)),
        Schema::Bool | Schema::Integer { .. } | Schema::String | Schema::OneOf(_) | Schema::Any => (),
    }
}

fn in_words(schema: &Schema) -> String {
    match schema {
        Schema::Bool => "true or false".to_owned(),
        Schema::Integer { min: 0, .. } => "integer".to_owned(),
        Schema::Integer { min, max } => format!("{min} to {max}"),
        Schema::String => "string".to_owned(),
        Schema::OneOf(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Schema::Array(inside) => format!("list: {}", in_words(inside)),
        Schema::Object(_) | Schema::Flattened(_) => "object".to_owned(),
        Schema::Map { .. } => "object by name".to_owned(),
        Schema::AnyOf(schemas) => schemas.iter().map(in_words).collect::<Vec<_>>().join(", or "),
        Schema::Any => "anything".to_owned(),
    }
}

fn schema_of(schema: &Schema) -> Map<String, Value> {
    let schema = match schema {
        Schema::Bool => json!({ "type": "boolean" }),
        Schema::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Schema::String => json!({ "type": "string" }),
        Schema::OneOf(words) => json!({ "enum": words }),
        Schema::Array(inside) => json!({ "type": "array", "items": schema_of(inside) }),
        Schema::Map { members, others } => {
            let mut schema = schema_of(&Schema::Object(members.clone()));
            schema.insert("additionalProperties".to_owned(), json!(schema_of(others)));
            Value::Object(schema)
        }
        Schema::AnyOf(schemas) => json!({ "anyOf": schemas.iter().map(schema_of).collect::<Vec<_>>() }),
        Schema::Any => json!({}),
        Schema::Object(members) | Schema::Flattened(members) => {
            let mut properties = Map::new();
            for member in beside(members).chain(members) {
                let mut property = schema_of(&member.schema);
                property.insert("description".to_owned(), json!(member.doc));
                properties.insert(member.name.to_owned(), Value::Object(property));
            }
            json!({ "type": "object", "properties": properties })
        }
    };
    match schema {
        Value::Object(schema) => schema,
        other => panic!("{other} is not a schema"),
    }
}

/// The members that may be next to these, instead of inside one of them.
fn beside(members: &[Member]) -> impl Iterator<Item = &Member> {
    let flattened = members.iter().filter_map(|member| match &member.schema {
        Schema::Flattened(inside) => Some(inside),
        _ => None,
    });
    flattened.flatten()
}

#[test]
fn published_schema_types_the_members_next_to_the_mode() {
    let text = std::fs::read_to_string(docs().join("boundary.schema.json")).expect("it is readable");
    let schema: Value = serde_json::from_str(&text).expect("it is JSON");
    let idempotency = &schema["properties"]["http"]["properties"]["idempotency"]["properties"];
    let enabled = &idempotency["enabled"]["properties"];
    for (name, inside) in enabled.as_object().expect("it has members") {
        assert_eq!(&idempotency[name], inside, "{name}");
    }
    assert_eq!(idempotency["storage"]["properties"]["ttl"]["properties"]["days"]["type"], "integer");
}

#[test]
fn starting_set_has_no_unknown_members() {
    let names: Vec<Name> = STARTING
        .iter()
        .map(|(file, text)| {
            let boundary = Boundary::read(file, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(boundary.unknown_members(), [""; 0], "{file}");
            assert!(STARTING_README.contains(&format!("`{file}`")), "{file}");
            boundary.name()
        })
        .collect();
    assert_eq!(names, Name::ALL);
}

#[test]
fn a_browsers_preflight_passes_the_starting_set() {
    let sent = ["accept", "access-control-request-headers", "access-control-request-method", "origin"];
    for (file, text) in STARTING {
        let boundary = Boundary::read(file, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        assert!(boundary.http.methods.allows("OPTIONS"), "{file}");
        for (direction, lists) in boundary.headers.directions.iter() {
            let stopped: Vec<&str> = sent.into_iter().filter(|header| !lists.passes(header)).collect();
            assert_eq!(stopped, [""; 0], "{file} {direction}");
        }
    }
}
