//! The state-changing operations of an `OpenAPI` document, with a body built from its schema.

mod body;

use ichido_core::text::bounded;
use serde_json::Value;

/// The largest document that is read.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The longest chain of references that is followed.
const MAX_REFERENCES: usize = 16;
/// How much of a reference is shown.
const MAX_REFERENCE_CHARS: usize = 80;
const METHODS: [&str; 4] = ["post", "put", "patch", "delete"];

/// An operation that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApiOperation {
    /// The method, in upper case.
    pub method: String,
    /// The URL of its first server, which may be relative to the document's own.
    pub server: Option<String>,
    /// The path, without that of the server.
    pub path: String,
    /// A body that its schema allows; empty if it has none.
    pub body: String,
    /// Why it cannot be tested.
    pub skipped: Option<String>,
}

/// Why a text is not an `OpenAPI` document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApiError(pub String);

impl std::fmt::Display for OpenApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenApiError {}

/// Returns the state-changing operations of a document, in its order.
pub fn operations(text: &str) -> Result<Vec<OpenApiOperation>, OpenApiError> {
    let document: Value = serde_json::from_str(text)
        .map_err(|error| OpenApiError(format!("is not JSON: {error}; convert YAML to JSON first")))?;
    let paths = document["paths"].as_object().ok_or_else(|| OpenApiError("has no paths".to_owned()))?;
    let mut found = Vec::new();
    for (path, item) in paths {
        let item = match resolved(&document, item) {
            Ok(item) => item,
            Err(why) => {
                let (method, path, skipped) = ("ANY".to_owned(), path.to_owned(), Some(why));
                found.push(OpenApiOperation { method, server: None, path, body: String::new(), skipped });
                continue;
            }
        };
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                found.push(read(&document, path, item, method, operation));
            }
        }
    }
    Ok(found)
}

fn read(document: &Value, path: &str, item: &Value, method: &str, operation: &Value) -> OpenApiOperation {
    let server = server(&[operation, item, document]);
    let body = check(document, path, &[operation, item]).and_then(|()| {
        let body = resolved(document, &operation["requestBody"])?;
        body::built(document, body)
    });
    OpenApiOperation {
        method: method.to_ascii_uppercase(),
        skipped: body.as_ref().err().or(server.as_ref().err()).cloned(),
        server: server.unwrap_or_default(),
        path: path.to_owned(),
        body: body.unwrap_or_default(),
    }
}

/// Says why an operation cannot be tested, whatever its body.
fn check(document: &Value, path: &str, nested: &[&Value]) -> Result<(), String> {
    // Anything else could end the request line, or become a part of the host.
    if !path.starts_with('/') || !is_plain(path) {
        return Err("its path does not begin with /, or holds more than visible ASCII".to_owned());
    }
    if document.get("swagger").is_some() {
        return Err("the document is Swagger 2.0; convert it to OpenAPI 3, or probe it with a URL".to_owned());
    }
    if path.contains('{') {
        return Err("its path has parameters; probe it with a URL".to_owned());
    }
    match needed_query(document, nested)? {
        Some(name) => Err(format!("it needs the query parameter \"{name}\"; probe it with a URL")),
        None => Ok(()),
    }
}

/// Whether a text can be a part of a URL.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// Returns the URL of the first server, of the closest object that lists servers, with the defaults of its variables.
fn server(nested: &[&Value]) -> Result<Option<String>, String> {
    let listed = nested.iter().find_map(|object| object["servers"].as_array()?.first());
    let Some(server) = listed else { return Ok(None) };
    let mut url = server["url"].as_str().ok_or("its server has no url")?.to_owned();
    for (name, variable) in server["variables"].as_object().into_iter().flatten() {
        let default = variable["default"].as_str();
        let default =
            default.ok_or_else(|| format!("the variable \"{name}\" of its server has no default"))?;
        url = url.replace(&format!("{{{name}}}"), default);
    }
    if url.contains('{') {
        return Err(format!("its server, {url}, has a variable that the document does not define"));
    }
    if !is_plain(&url) {
        return Err("its server's URL holds more than visible ASCII".to_owned());
    }
    Ok(Some(url))
}

/// Returns the name of a query parameter without which the operation is refused.
fn needed_query<'a>(document: &'a Value, nested: &[&'a Value]) -> Result<Option<&'a str>, String> {
    let all = nested.iter().filter_map(|object| object["parameters"].as_array()).flatten();
    let all: Vec<_> = all.map(|parameter| resolved(document, parameter)).collect::<Result<_, _>>()?;
    let mut needed = all.iter().filter(|one| one["in"] == "query" && one["required"] == true);
    Ok(needed.next().and_then(|parameter| parameter["name"].as_str()))
}

/// Follows a reference inside the document.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> Result<&'a Value, String> {
    let mut value = value;
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = value["$ref"].as_str() else { return Ok(value) };
        let shown = bounded(reference, MAX_REFERENCE_CHARS);
        let pointer = reference.strip_prefix('#').ok_or_else(|| {
            format!("its $ref \"{shown}\" is outside the document; bundle the document into one file")
        })?;
        let missing =
            || format!("its $ref \"{shown}\" is not in the document; add it, or probe it with a URL");
        value = document.pointer(pointer).ok_or_else(missing)?;
    }
    Err("a $ref leads back to itself or through too many others; probe it with a URL".to_owned())
}

#[cfg(test)]
mod tests;
