//! An invalid layer is not built, and all errors are reported at once.

use std::time::Duration;

use axum::http::Method;
use ichido::once::{Class, Guarantee, OnUnknown, Once, OnceConfigError, limits};
use ichido_core::ledger::PolicyError;

use super::fixture::{Mode, OnceFixture, both_databases};

both_databases! {
    #[test]
    async fn every_contradiction_is_found_at_once(fixture: OnceFixture) {
        let errors = Once::operation("").build(&fixture.keeper).unwrap_err();
        let expected = [OnceConfigError::OperationName, OnceConfigError::NoClass, OnceConfigError::NoIdentity];
        assert_eq!(&errors[..], expected);
        let shown = errors.to_string();
        assert_eq!(shown.lines().count(), 3, "{shown}");
        assert!(shown.contains("single_identity"), "it says how to fix it: {shown}");

        let once = Once::operation("orders\0create")
            .class(Class::ExternalEffect)
            .single_identity("app")
            .methods([Method::GET, Method::PUT])
            .ttl(Duration::from_secs(1))
            .lease(Duration::ZERO)
            .max_request_bytes(limits::MAX_BYTES + 1)
            .on_unknown(OnUnknown::Reconcile);
        let errors = once.build(&fixture.keeper).unwrap_err();
        assert!(errors.contains(&OnceConfigError::OperationName));
        assert!(errors.contains(&OnceConfigError::SafeMethod { method: Method::GET }));
        assert!(errors.contains(&OnceConfigError::ReconcileHalf));
        let bytes = limits::MAX_BYTES + 1;
        assert!(errors.contains(&OnceConfigError::BoundTooLarge { what: "max_request_bytes", bytes }));
        let policy = errors.iter().filter(|error| matches!(error, OnceConfigError::Policy(_))).count();
        assert_eq!(policy, 3, "too short for an external effect, shorter than retries, no lease: {errors}");
    }

    #[test]
    async fn a_layer_over_nothing_or_over_reads_is_not_built(fixture: OnceFixture) {
        let none = fixture.once(Mode::Opaque).methods([]).build(&fixture.keeper).unwrap_err();
        assert_eq!(&none[..], [OnceConfigError::NoMethod]);
        let read = fixture.once(Mode::Opaque).class(Class::Read).build(&fixture.keeper).unwrap_err();
        assert_eq!(&read[..], [OnceConfigError::Policy(PolicyError::ReadIsNotDeduplicated)]);
    }

    #[test]
    async fn a_transaction_must_be_on_the_stores_kind_of_database(fixture: OnceFixture) {
        let other = if fixture.is_sqlite() { OnceFixture::postgres().await } else { OnceFixture::sqlite().await };
        let once = fixture.once(Mode::Opaque).guarantee(Guarantee::Transactional(other.business.clone()));
        let errors = once.build(&fixture.keeper).unwrap_err();
        assert_eq!(&errors[..], [OnceConfigError::OtherDatabase]);
    }
}
