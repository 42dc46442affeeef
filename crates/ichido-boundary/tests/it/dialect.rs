//! The dialect: every member, as listed by the code itself.

use ichido_boundary::{Schema, schema};

/// Every member by its pointer, with `*` for a name that the file chooses, and its schema.
pub(crate) fn members() -> Vec<(String, Schema)> {
    let mut members = Vec::new();
    gather("", &schema(), &mut members);
    members
}

fn gather(pointer: &str, schema: &Schema, members: &mut Vec<(String, Schema)>) {
    match schema {
        Schema::Object(inside) | Schema::Flattened(inside) => {
            for member in inside {
                let pointer = format!("{pointer}/{}", member.name);
                members.push((pointer.clone(), member.schema.clone()));
                gather(&pointer, &member.schema, members);
            }
        }
        Schema::Map { members: fixed, others } => {
            gather(pointer, &Schema::Object(fixed.clone()), members);
            let pointer = format!("{pointer}/*");
            members.push((pointer.clone(), (**others).clone()));
            gather(&pointer, others, members);
        }
        Schema::Array(inside) => gather(pointer, inside, members),
        Schema::AnyOf(schemas) => schemas.iter().for_each(|schema| gather(pointer, schema, members)),
        Schema::Bool | Schema::Integer { .. } | Schema::String | Schema::OneOf(_) | Schema::Any => (),
    }
}
