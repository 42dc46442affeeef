//! The dialect: every member there is, as the code itself lists it.

use ichido_boundary::{Shape, shape};

/// Every member by its pointer, with `*` for a name that the file chooses, and its shape.
pub(crate) fn members() -> Vec<(String, Shape)> {
    let mut members = Vec::new();
    gather("", &shape(), &mut members);
    members
}

fn gather(pointer: &str, shape: &Shape, members: &mut Vec<(String, Shape)>) {
    match shape {
        Shape::Object(inside) => {
            for member in inside {
                let pointer = format!("{pointer}/{}", member.name);
                members.push((pointer.clone(), member.shape.clone()));
                gather(&pointer, &member.shape, members);
            }
        }
        Shape::Named(inside) => {
            let pointer = format!("{pointer}/*");
            members.push((pointer.clone(), (**inside).clone()));
            gather(&pointer, inside, members);
        }
        Shape::List(inside) => gather(pointer, inside, members),
        Shape::Either(shapes) => shapes.iter().for_each(|shape| gather(pointer, shape, members)),
        Shape::Truth | Shape::Whole { .. } | Shape::Text | Shape::OneOf(_) | Shape::Any => (),
    }
}
