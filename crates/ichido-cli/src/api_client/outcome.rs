//! What a response means for the command that made the request.

use http::header::LOCATION;
use ichido_client::decision::GiveUpReason;
use ichido_client::{LastResult, Outcome, Response};
use ichido_core::text::visible;
use ichido_core::verdict::Effect;

use crate::exit::Exit;

/// An error response, which says why.
pub(crate) struct ApiProblem(Box<Response>);

impl ApiProblem {
    pub(crate) fn status(&self) -> u16 {
        self.0.status
    }

    /// Returns a text of the problem details, such as the one at `/reason`.
    pub(crate) fn text_at(&self, pointer: &str) -> Option<String> {
        self.0.text_at(pointer)
    }

    /// Returns the reason, for people.
    pub(crate) fn message(&self) -> String {
        let problem = self.0.problem();
        let text = problem.detail.or(problem.title).or_else(|| describe_redirect(&self.0));
        visible(&text.unwrap_or_else(|| format!("the server responded {}", self.0.status)))
    }
}

impl From<ApiProblem> for Exit {
    fn from(problem: ApiProblem) -> Self {
        let text = problem.message();
        match problem.status() {
            400 | 422 => Self::invalid("request", text),
            401 => Self::Failed(format!("{text}; set the token in ICHIDO_TOKEN")),
            409 => Self::Conflict(text),
            408 | 429 | 502..=504 => Self::Unreachable(text),
            _ => Self::Failed(text),
        }
    }
}

/// Returns a complete success response, or the problem.
pub(super) fn into_result(answer: Response) -> Result<Result<Response, ApiProblem>, Exit> {
    match (answer.status, answer.is_whole) {
        (200..=299, true) => Ok(Ok(answer)),
        (200..=299, false) => Err(unexpected_response("it is too long")),
        _ => Ok(Err(ApiProblem(Box::new(answer)))),
    }
}

/// Returns the server's response to a read, if it is a usable one.
pub(super) fn of_read(outcome: Outcome) -> Result<Response, Exit> {
    answer_of(outcome).map_err(|(why, _)| Exit::Unreachable(why))
}

/// Returns the server's response to a change, which may have happened even without a response.
pub(super) fn of_change(outcome: Outcome) -> Result<Response, Exit> {
    answer_of(outcome).map_err(|(why, effect)| {
        let known = match effect {
            Effect::NotDone => "nothing was changed",
            Effect::Done | Effect::Unknown => {
                "it is unknown whether the change was made; check the current state before you retry"
            }
        };
        Exit::Unreachable(format!("{why}; {known}"))
    })
}

fn answer_of(outcome: Outcome) -> Result<Response, (String, Effect)> {
    match outcome {
        Outcome::Done { answer, .. } | Outcome::Refused { answer, .. } => Ok(answer),
        // Our own server says what was done.
        Outcome::GaveUp { last: LastResult::Response(answer), .. } if answer.problem().code.is_some() => {
            Ok(answer)
        }
        Outcome::GaveUp { why, last, effect, .. } => Err((describe_failure(why, &last), effect)),
    }
}

/// Describes why the outcome is unknown.
pub(crate) fn describe_failure(why: GiveUpReason, last: &LastResult) -> String {
    let seen = match last {
        LastResult::Error { why: error, .. } => {
            return format!(
                "the server cannot be reached: {error}; {why}; check that `ichido serve` runs there, and the URL in --server or ICHIDO_SERVER"
            );
        }
        LastResult::Response(answer) => match answer.problem().detail {
            Some(detail) => format!("the server responded {}: {detail}", answer.status),
            None => format!("the server responded {}", answer.status),
        },
    };
    format!("{seen}; {why}")
}

/// Describes a redirect: its target, and what to do. Returns `None` for any other response.
///
/// Redirects are not followed: a request with a key and a token goes only where it was sent.
pub(crate) fn describe_redirect(answer: &Response) -> Option<String> {
    if !(300..400).contains(&answer.status) {
        return None;
    }
    let location = answer.headers.get(LOCATION).and_then(|place| place.to_str().ok());
    let Some(target) = location.map(without_secrets) else {
        return Some(format!(
            "the server responded {}, a redirect without a Location; redirects are not followed, pass the server's URL with --server",
            answer.status
        ));
    };
    // The part before our paths is the server's URL.
    let server = target.split_once("/v1/").map(|(server, _)| server).filter(|server| server.contains("://"));
    let help = match server {
        Some(server) => format!("if that is the server, pass --server {server}"),
        None => "pass the server's own URL with --server; a proxy in front of it may require a login or redirect http to https".to_owned(),
    };
    Some(format!(
        "the server responded {}, a redirect to {target}; redirects are not followed; {help}",
        answer.status
    ))
}

/// Returns a URL without its query, user name and password.
fn without_secrets(address: &str) -> String {
    let plain = address.split(['?', '#']).next().unwrap_or_default();
    match plain.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => plain.to_owned(),
    }
}

/// The response is not from an Ichido server, or from a much newer one.
pub(super) fn unexpected_response(why: impl std::fmt::Display) -> Exit {
    Exit::Failed(format!(
        "cannot understand the server's response: {why}; check that the URL is that of an Ichido server of this version"
    ))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn redirect_text(status: u16, location: Option<&'static str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.extend(location.map(|place| (LOCATION, HeaderValue::from_static(place))));
        describe_redirect(&Response { status, headers, body: Bytes::new(), is_whole: true })
    }

    #[test]
    fn redirect_error_names_target_and_help_without_secrets() {
        let moved = redirect_text(
            308,
            Some("https://ann:s3cret@ichido.test/base/v1/queues/orders/messages?token=s3cret"),
        );
        assert_eq!(
            moved.as_deref(),
            Some(
                "the server responded 308, a redirect to https://ichido.test/base/v1/queues/orders/messages; redirects are not followed; if \
                 that is the server, pass --server https://ichido.test/base"
            )
        );
        let login = redirect_text(302, Some("/login?next=%2F")).unwrap();
        assert!(
            login.contains("a redirect to /login; redirects are not followed; pass the server's own URL"),
            "{login}"
        );
        assert!(redirect_text(301, None).unwrap().contains("a redirect without a Location"));
        assert_eq!((redirect_text(200, None), redirect_text(404, Some("/"))), (None, None));
    }
}
