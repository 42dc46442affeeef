//! Errors of jobs: as a stable code, in words for a person, and as a result for the worker.

use std::time::Duration;

use ichido::destination::JobError;

/// Declares each error once: its code, the words for a person, and whether an automatic retry could help.
macro_rules! job_errors {
    ($($(#[$doc:meta])* $name:ident: $code:literal, $words:literal, $lasts:ident;)+) => {
        /// The kind of a job's error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum JobErrorCode {
            $($(#[$doc])* $name,)+
        }

        impl JobErrorCode {
            pub(crate) const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the code, the words, and how long the error lasts.
            const fn row(self) -> (&'static str, &'static str, Lasts) {
                match self {
                    $(Self::$name => ($code, $words, Lasts::$lasts),)+
                }
            }
        }
    };
}

job_errors! {
    PageUnreachable: "page_unreachable", "The page could not be reached", Passing;
    PageTooSlow: "page_too_slow", "The page took too long to load", Passing;
    PageFailing: "page_failing", "The site has a problem at the moment", Passing;
    PageBusy: "page_busy", "The site is too busy at the moment", Passing;
    PageNotFound: "page_not_found", "The page does not exist", Lasting;
    PageRefused: "page_refused", "The site did not let us read the page", Lasting;
    PageUntrusted: "page_untrusted", "The certificate of the site is not trusted", Lasting;
    PageNotText: "page_not_text", "This is not a text page, so it cannot be summarised", Lasting;
    AddressRefused: "address_refused", "Pages at this address cannot be summarised", Lasting;
    ModelBusy: "model_busy", "The summariser is too busy at the moment", Passing;
    ModelUnavailable: "model_unavailable", "The summariser could not be reached", Passing;
    ModelRefused: "model_refused", "The summariser does not let us in", Lasting;
    ModelRequest: "model_request", "The summariser could not accept this page", Lasting;
    ModelQuota: "model_quota", "The quota of the summariser is used up", Lasting;
    ModelUnusable: "model_unusable", "The summariser did not return a usable summary", Passing;
    /// Anything else: a database that was away, a program that was terminated.
    JobFailed: "job_failed", "Something went wrong on our side", Passing;
}

/// How long an error lasts.
enum Lasts {
    /// It may be gone at the next attempt.
    Passing,
    /// It stays until somebody changes something.
    Lasting,
}

impl JobErrorCode {
    /// Returns the code.
    pub(crate) const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the words for a person.
    pub(crate) const fn words(self) -> &'static str {
        self.row().1
    }

    /// Returns whether an automatic retry could help.
    pub(crate) const fn is_passing(self) -> bool {
        matches!(self.row().2, Lasts::Passing)
    }

    /// Returns whether a person's retry could help: they may know that the page is there again, or can be read now.
    pub(crate) const fn can_retry(self) -> bool {
        !matches!(self, Self::AddressRefused)
    }

    /// Returns whether a retry of all such jobs could help.
    ///
    /// It does once the operator has fixed the access to the model, or the page's owner its certificate. The view
    /// `failed_jobs` says the same.
    pub(crate) const fn is_retryable(self) -> bool {
        self.is_passing()
            || matches!(
                self,
                Self::ModelRefused | Self::ModelRequest | Self::ModelQuota | Self::PageUntrusted
            )
    }

    /// Formats the error for the engine's rows: the code, then the detail.
    pub(crate) fn why(self, detail: &str) -> String {
        format!("{}: {detail}", self.as_str())
    }

    /// Parses the last error of a message, which begins with the code.
    pub(crate) fn of_error(error: Option<&str>) -> Self {
        let code = error.and_then(|error| error.split_once(':')).map_or("", |(code, _)| code);
        Self::of_code(code).unwrap_or(Self::JobFailed)
    }

    /// Returns the error with this code.
    pub(crate) fn of_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|job_error| job_error.as_str() == code)
    }
}

/// What went wrong this time. The detail is for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobFailure {
    pub(crate) job_error: JobErrorCode,
    pub(crate) detail: String,
    /// Minimum wait, if the server asked for one.
    pub(crate) wait: Option<Duration>,
}

impl JobFailure {
    pub(crate) fn new(job_error: JobErrorCode, detail: impl Into<String>) -> Self {
        Self { job_error, detail: detail.into(), wait: None }
    }

    /// Converts to a result for the worker. One page's failure says nothing about other pages, so it does not affect
    /// their pace.
    pub(crate) fn failed(self) -> JobError {
        let why = self.job_error.why(&self.detail);
        match self.wait {
            _ if !self.job_error.is_passing() => JobError::dead(why),
            Some(wait) => JobError::retry_after(wait, why),
            None => JobError::retry(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_of_failed_jobs_agrees_about_retries() {
        let hopeless = JobErrorCode::ALL.iter().filter(|job_error| !job_error.is_retryable());
        let listed: Vec<String> = hopeless.map(|job_error| format!("'{}'", job_error.as_str())).collect();
        let expected = format!("NOT IN ({}) AS retryable", listed.join(", "));
        for schema in [include_str!("../schema/sqlite.sql"), include_str!("../schema/postgres.sql")] {
            assert!(schema.contains(&expected), "no `{expected}` in the schema");
        }
    }

    #[test]
    fn the_page_has_each_error_in_both_languages() {
        let words = include_str!("../page/words.js");
        for job_error in JobErrorCode::ALL {
            let code = format!(" {}: '", job_error.as_str());
            assert_eq!(words.matches(&code).count(), 2, "{}", job_error.as_str());
        }
    }

    #[test]
    fn an_error_is_parsed_from_its_code() {
        for job_error in JobErrorCode::ALL {
            assert_eq!(JobErrorCode::of_error(Some(&job_error.why("a: b"))), *job_error);
        }
        for other in [None, Some("the handler panicked: oh"), Some("")] {
            assert_eq!(JobErrorCode::of_error(other), JobErrorCode::JobFailed);
        }
    }
}
