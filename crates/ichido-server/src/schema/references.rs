//! References in a schema.
//!
//! Guarantee: each points into the same document, and none leads back to itself without descending into the message, which would
//! not terminate.

use std::collections::HashMap;

use serde_json::Value;

use super::{SchemaError, invalid};

/// Maximum steps from schema to schema at one location in a message. A step is a nested schema or a reference.
pub(super) const MAX_STEPS: usize = 64;

/// Keywords whose value is data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
/// Keywords whose value contains schemas under user-chosen names.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const REFERENCES: [&str; 2] = ["$ref", "$dynamicRef"];
/// Keywords whose schemas apply to the same location in the message.
const SAME_LOCATION: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// Checks the references of a schema.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    let mut found = SchemaIndex { schemas: HashMap::new(), anchors: HashMap::new() };
    found.walk(schema, String::new())?;
    let mut depths = HashMap::new();
    let mut pointers: Vec<&String> = found.schemas.keys().collect();
    pointers.sort_unstable();
    pointers.into_iter().try_for_each(|pointer| found.depth(pointer, 0, &mut depths).map(|_| ()))
}

/// Every schema in a document, by its location.
struct SchemaIndex<'a> {
    schemas: HashMap<String, &'a Value>,
    /// The locations of each anchor; a dynamic anchor may have several.
    anchors: HashMap<&'a str, Vec<String>>,
}

impl<'a> SchemaIndex<'a> {
    fn walk(&mut self, schema: &'a Value, pointer: String) -> Result<(), SchemaError> {
        match schema {
            Value::Object(members) => {
                for (name, value) in members {
                    let inside = child_pointer(&pointer, name);
                    match (name.as_str(), value) {
                        (name, Value::String(to)) if REFERENCES.contains(&name) => {
                            check_reference(to, &inside)?;
                        }
                        ("$id", Value::String(_)) if !pointer.is_empty() => {
                            let what = "embeds another document, which is not supported; remove $id, and refer with \"#/$defs/…\"";
                            return Err(invalid(&inside, what));
                        }
                        ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => {
                            self.anchors.entry(anchor).or_default().push(pointer.clone());
                        }
                        (name, _) if DATA.contains(&name) => {}
                        (name, Value::Object(named)) if NAMED.contains(&name) => {
                            named.iter().try_for_each(|(name, schema)| {
                                self.walk(schema, child_pointer(&inside, name))
                            })?;
                        }
                        (_, value) => self.walk(value, inside)?,
                    }
                }
                self.schemas.insert(pointer, schema);
                Ok(())
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, item)| {
                    self.walk(item, child_pointer(&pointer, &index.to_string()))
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns how many steps a schema leads to at one location in a message.
    ///
    /// `depths` caches results, and holds `None` while one is being computed.
    fn depth(
        &self,
        pointer: &str,
        taken: usize,
        depths: &mut HashMap<String, Option<usize>>,
    ) -> Result<usize, SchemaError> {
        let depth = match depths.get(pointer) {
            Some(Some(depth)) => *depth,
            Some(None) => {
                return Err(invalid(
                    pointer,
                    "refers to itself without descending into the message, which never ends",
                ));
            }
            None => {
                depths.insert(pointer.to_owned(), None);
                let mut deepest = 0;
                if taken < MAX_STEPS {
                    for next in self.next(pointer) {
                        deepest = deepest.max(1 + self.depth(&next, taken + 1, depths)?);
                    }
                }
                depths.insert(pointer.to_owned(), Some(deepest));
                deepest
            }
        };
        if MAX_STEPS <= taken + depth {
            return Err(invalid(
                pointer,
                &format!("is {MAX_STEPS} or more references or nested schemas deep; flatten it"),
            ));
        }
        Ok(depth)
    }

    /// Returns the schemas that apply to the same location in the message.
    fn next(&self, pointer: &str) -> Vec<String> {
        let Some(members) = self.schemas.get(pointer).and_then(|schema| schema.as_object()) else {
            return Vec::new();
        };
        let mut next = Vec::new();
        for (name, value) in members {
            let inside = child_pointer(pointer, name);
            match value {
                Value::String(to) if REFERENCES.contains(&name.as_str()) => {
                    let to = to.trim_start_matches('#');
                    match self.anchors.get(to) {
                        Some(pointers) => next.extend(pointers.iter().cloned()),
                        None => next.push(to.to_owned()),
                    }
                }
                _ if !SAME_LOCATION.contains(&name.as_str()) => {}
                Value::Array(items) => {
                    next.extend((0..items.len()).map(|index| child_pointer(&inside, &index.to_string())));
                }
                Value::Object(named) if name == "dependentSchemas" => {
                    next.extend(named.keys().map(|name| child_pointer(&inside, name)));
                }
                _ => next.push(inside),
            }
        }
        next
    }
}

fn check_reference(to: &str, pointer: &str) -> Result<(), SchemaError> {
    if !to.starts_with('#') {
        let what = "refers to another document; move its target under $defs in this file, and refer with \"#/$defs/…\"";
        return Err(invalid(pointer, what));
    }
    // Each location then has one spelling.
    if to.contains('%') {
        return Err(invalid(pointer, "has a % escape, which is not supported; rename its target"));
    }
    Ok(())
}

/// Returns the pointer to a member.
fn child_pointer(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
