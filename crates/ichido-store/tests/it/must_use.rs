//! A dropped result would lose work in silence, so the compiler warns of it.
// SPEC H4.

use ichido_store::Store;

use crate::fixture::StoreFixture;

// Each function is an error without the warning that it expects.

#[expect(unused_must_use, reason = "the warning is what is tested")]
async fn drop_enqueued(store: &Store) {
    store.messages().enqueue_all(Vec::new()).await;
}

#[expect(unused_must_use, reason = "the warning is what is tested")]
async fn drop_settled(store: &Store) {
    store.claims().settle_all(Vec::new()).await;
}

#[expect(unused_must_use, reason = "the warning is what is tested")]
async fn drop_settled_together(store: &Store) {
    store.claims().settle_together(Vec::new()).await;
}

#[tokio::test]
async fn dropped_result_of_a_batch_is_a_warning() {
    for fixture in [StoreFixture::sqlite().await, StoreFixture::postgres().await] {
        drop_enqueued(&fixture.store).await;
        drop_settled(&fixture.store).await;
        drop_settled_together(&fixture.store).await;
    }
}
