//! The pace of each destination, shared by all nodes.

use super::Paces;
use crate::alert::limits::MAX_PACES;
use crate::check;
use crate::columns::Columns as _;
use crate::future::StoreFuture;
use crate::node::SharedPace;
use crate::rows::pace;
use crate::statement::shared;

impl<'s> Paces<'s> {
    /// Reads a destination's pace. Returns `None` if nobody has written one.
    pub fn read(self, destination: &'s str) -> StoreFuture<'s, Option<SharedPace>> {
        Box::pin(async move {
            check::no_nul("the destination", destination)?;
            let row = self.0.driver.optional(shared!("pace_read"), &[destination.into()]).await?;
            row.as_ref().map(pace).transpose()
        })
    }

    /// Writes a destination's pace over the version that was read. Returns `false` if somebody else was faster.
    pub fn write(self, destination: &'s str, version: i64, pace: &'s [u8]) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            check::no_nul("the destination", destination)?;
            let values = [destination.into(), version.into(), pace.into()];
            Ok(self.0.driver.write_returning(shared!("pace_write"), &values).await?.is_some())
        })
    }

    /// Lists the paces of all destinations, by name.
    pub fn list(self) -> StoreFuture<'s, Vec<(String, SharedPace)>> {
        Box::pin(async move {
            let rows = self.0.driver.all(shared!("pace_list"), &[i64::from(MAX_PACES).into()]).await?;
            rows.iter().map(|row| Ok((row.text("name")?.to_owned(), pace(row)?))).collect()
        })
    }
}
