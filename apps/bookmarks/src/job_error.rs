//! What can be wrong with a job: as a code that stays the same, in words for a person, and as what the worker is told.

use std::time::Duration;

use ichido::destination::Failed;

/// Declares each trouble once: its code, the words for a person, and whether trying again by itself could help.
macro_rules! job_errors {
    ($($(#[$doc:meta])* $name:ident: $code:literal, $words:literal, $lasts:ident;)+) => {
        /// What was wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum JobError {
            $($(#[$doc])* $name,)+
        }

        impl JobError {
            pub(crate) const ALL: &[Self] = &[$(Self::$name),+];

            /// Its code, its words, and how long it lasts.
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
    PageTooSlow: "page_too_slow", "The page took too long to answer", Passing;
    PageFailing: "page_failing", "The page's server has a problem", Passing;
    PageBusy: "page_busy", "The page's server has too much to do", Passing;
    PageNotFound: "page_not_found", "There is no such page", Lasting;
    PageRefused: "page_refused", "The page may not be read without signing in there", Lasting;
    PageUntrusted: "page_untrusted", "The page's certificate cannot be trusted", Lasting;
    PageTooLarge: "page_too_large", "The page is too large", Lasting;
    PageNotText: "page_not_text", "This is not a page of text", Lasting;
    AddressRefused: "address_refused", "Pages at this address are not fetched", Lasting;
    ModelBusy: "model_busy", "The summariser has too much to do", Passing;
    ModelUnavailable: "model_unavailable", "The summariser could not be reached", Passing;
    ModelRefused: "model_refused", "The summariser does not take our requests", Lasting;
    ModelUnusable: "model_unusable", "The summariser gave no usable answer", Passing;
    /// Anything else: a database that was away, a program that was ended.
    JobFailed: "job_failed", "Something went wrong on our side", Passing;
}

/// How long a trouble lasts.
enum Lasts {
    /// It may be over at the next attempt.
    Passing,
    /// It is there until somebody changes something.
    Lasting,
}

impl JobError {
    /// Its code.
    pub(crate) const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The same for a person.
    pub(crate) const fn words(self) -> &'static str {
        self.row().1
    }

    /// Whether trying again by itself could help.
    pub(crate) const fn is_passing(self) -> bool {
        matches!(self.row().2, Lasts::Passing)
    }

    /// Whether a person's retry could help: a wrong key to the model is mended by who runs this service, a page's certificate by who runs the
    /// page, and then it does. The view `failed_jobs` says the same.
    pub(crate) const fn can_retry(self) -> bool {
        self.is_passing() || matches!(self, Self::ModelRefused | Self::PageUntrusted)
    }

    /// How it stands in the engine's rows: the code, then the detail.
    pub(crate) fn why(self, detail: &str) -> String {
        format!("{}: {detail}", self.as_str())
    }

    /// What the last error of a message says, which begins with the code.
    pub(crate) fn of_error(error: Option<&str>) -> Self {
        let code = error.and_then(|error| error.split_once(':')).map_or("", |(code, _)| code);
        Self::of_code(code).unwrap_or(Self::JobFailed)
    }

    /// The trouble of a code.
    pub(crate) fn of_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|job_error| job_error.as_str() == code)
    }
}

/// What went wrong this time. The detail is for who runs the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobFailure {
    pub(crate) job_error: JobError,
    pub(crate) detail: String,
    /// How long to wait at least, where somebody asked for it.
    pub(crate) wait: Option<Duration>,
}

impl JobFailure {
    pub(crate) fn new(job_error: JobError, detail: impl Into<String>) -> Self {
        Self { job_error, detail: detail.into(), wait: None }
    }

    /// What the worker is told. A page that fails says nothing of other pages, so the pace at which those are read hears nothing of it.
    pub(crate) fn failed(self) -> Failed {
        let why = self.job_error.why(&self.detail);
        match self.wait {
            _ if !self.job_error.is_passing() => Failed::dead(why),
            Some(wait) => Failed::retry_after(wait, why),
            None => Failed::retry(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_of_failed_jobs_says_the_same_of_retries() {
        let hopeless = JobError::ALL.iter().filter(|job_error| !job_error.can_retry());
        let listed: Vec<String> = hopeless.map(|job_error| format!("'{}'", job_error.as_str())).collect();
        let expected = format!("NOT IN ({}) AS can_retry", listed.join(", "));
        for schema in [include_str!("../schema/sqlite.sql"), include_str!("../schema/postgres.sql")] {
            assert!(schema.contains(&expected), "no `{expected}` in the schema");
        }
    }

    #[test]
    fn the_page_has_words_for_each_in_both_languages() {
        let words = include_str!("../page/words.js");
        for job_error in JobError::ALL {
            let code = format!(" {}: '", job_error.as_str());
            assert_eq!(words.matches(&code).count(), 2, "{}", job_error.as_str());
        }
    }

    #[test]
    fn an_error_is_known_by_its_code_again() {
        for job_error in JobError::ALL {
            assert_eq!(JobError::of_error(Some(&job_error.why("a: b"))), *job_error);
        }
        for other in [None, Some("the handler panicked: oh"), Some("")] {
            assert_eq!(JobError::of_error(other), JobError::JobFailed);
        }
    }
}
