//! `ichido config schema`: the table of settings as a JSON Schema, for editors.

use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::setting::{Absent, Setting, SettingTable};
use super::show::to_json;
use super::table::{KIND, ROOT};

const TIME: &str = "^[0-9]+(ms|s|m|h|d)$";
const TIME_ABOVE_ZERO: &str = "^0*[1-9][0-9]*(ms|s|m|h|d)$";
const SIZE: &str = "^[0-9]+( ?(KiB|MiB|GiB))?$";
const REFERENCE: &str = "^(env|file):";

/// Returns the JSON Schema (draft 2020-12) of `ichido.toml`.
///
/// It refuses unknown names, wrong kinds and numbers out of range; the reader refuses more.
pub fn json_schema() -> Value {
    let mut schema = object(ROOT);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("ichido.toml");
    schema
}

/// Returns the schema of a table that has no other members.
fn object(table: SettingTable) -> Value {
    let settings = || table.iter().copied().flatten();
    let properties: Map<_, _> =
        settings().map(|setting| (setting.name.to_owned(), property(setting))).collect();
    let required = settings().filter(|setting| matches!(setting.absent, Absent::Required(_)));
    let required: Vec<&str> = required.map(|setting| setting.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn property(setting: &Setting) -> Value {
    let mut schema = kind_schema(&setting.kind);
    schema["description"] = json!(setting.description());
    if setting.has_default() {
        schema["default"] = json!(to_json(&setting.example()));
    }
    schema
}

fn kind_schema(kind: &Kind) -> Value {
    let texts = |item: Value| json!({ "type": "array", "items": item });
    match kind {
        Kind::Text | Kind::Reference | Kind::Path => json!({ "type": "string" }),
        Kind::Secret => json!({ "type": "string", "pattern": REFERENCE }),
        Kind::Address => json!({ "type": "string", "pattern": "^.+:[0-9]+$" }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number(min, f64::MAX) => json!({ "type": "number", "minimum": min }),
        Kind::Number(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Share => json!({ "type": "number", "minimum": 0, "exclusiveMaximum": 1 }),
        Kind::Time(min, _) => {
            json!({ "type": "string", "pattern": if min.is_zero() { TIME } else { TIME_ABOVE_ZERO } })
        }
        Kind::Size(min, max) => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": SIZE },
        ] }),
        Kind::Texts | Kind::References => texts(json!({ "type": "string" })),
        Kind::Secrets => texts(kind_schema(&Kind::Secret)),
        Kind::Fields => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Kind::Table(table) => object(table),
        Kind::WordOr(words, table) => json!({ "anyOf": [{ "enum": words }, object(table)] }),
        Kind::FlagOr(table) => json!({ "anyOf": [{ "type": "boolean" }, object(table)] }),
        Kind::Rows(table) => texts(object(table)),
        Kind::Named(named) => {
            let variants: Vec<Value> = named
                .variants
                .iter()
                .map(|variant| {
                    let mut schema = object(variant.table);
                    if !variant.word.is_empty() {
                        schema["properties"][KIND] = json!({ "const": variant.word });
                        // Settings with a preset are not required.
                        if variant.presets.is_some() {
                            schema["required"] = json!([KIND]);
                        }
                    }
                    schema
                })
                .collect();
            json!({ "type": "object", "additionalProperties": { "anyOf": variants } })
        }
    }
}
