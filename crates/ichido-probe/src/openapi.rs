//! The state-changing operations of an `OpenAPI` document, with a body built from its schema.

mod body;

use serde_json::Value;

/// The largest document that is read.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The longest chain of references that is followed.
const MAX_REFERENCES: usize = 16;
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
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                found.push(read(&document, path, item, method, operation));
            }
        }
    }
    Ok(found)
}

fn read(document: &Value, path: &str, item: &Value, method: &str, operation: &Value) -> OpenApiOperation {
    let body = body::built(document, resolved(document, &operation["requestBody"]));
    let server = server(&[operation, item, document]);
    let skipped = if path.contains('{') {
        Some("its path has parameters; probe it with a URL".to_owned())
    } else if let Some(name) = needed_query(document, &[operation, item]) {
        Some(format!("it needs the query parameter \"{name}\"; probe it with a URL"))
    } else {
        server.as_ref().err().or(body.as_ref().err()).cloned()
    };
    OpenApiOperation {
        method: method.to_ascii_uppercase(),
        server: server.unwrap_or_default(),
        path: path.to_owned(),
        body: body.unwrap_or_default(),
        skipped,
    }
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
    Ok(Some(url))
}

/// Returns the name of a query parameter without which the operation is refused.
fn needed_query<'a>(document: &'a Value, nested: &[&'a Value]) -> Option<&'a str> {
    let all = nested.iter().filter_map(|object| object["parameters"].as_array()).flatten();
    let mut needed = all
        .map(|parameter| resolved(document, parameter))
        .filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
    needed.next().and_then(|parameter| parameter["name"].as_str())
}

/// Follows a reference inside the document.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let mut value = value;
    for _ in 0..MAX_REFERENCES {
        let Some(pointer) = value["$ref"].as_str().and_then(|text| text.strip_prefix('#')) else { break };
        value = document.pointer(pointer).unwrap_or(&Value::Null);
    }
    value
}

#[cfg(test)]
mod tests;
