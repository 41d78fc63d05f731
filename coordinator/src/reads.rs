//! Reads of the store beside the driver: each sees one state, on a connection of its own and on threads that may take their
//! time. There are only so many at once, because each keeps the store from forgetting what it sees. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::driver::CallError;
use crate::store::reading::{Fact, Reading, Wanted};
use crate::store::{Reader, Readers, StoreError};

/// Reads at once; others wait for their turn.
pub(crate) const AT_ONCE: usize = 8;

/// How long they do.
const PATIENCE: Duration = Duration::from_secs(10);

/// A way to read the store.
#[derive(Clone)]
pub struct Reads {
    readers: Arc<dyn Readers>,
    places: Arc<Semaphore>,
}

impl Reads {
    pub(crate) fn new(readers: Arc<dyn Readers>) -> Self {
        Self { readers, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Reads something that is over in a moment.
    pub async fn once<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, CallError> {
        let (place, readers) = (self.place().await?, self.readers.clone());
        let found = apart(move || read(readers.open_reader()?.as_ref())).await;
        drop(place);
        found
    }

    /// Begins to read something that comes in pages.
    pub async fn begin(&self, wanted: Wanted) -> Result<Pages, CallError> {
        let (place, readers) = (self.place().await?, self.readers.clone());
        let reading = apart(move || Reading::new(readers.open_reader()?, wanted)).await?;
        Ok(Pages { reading: Some(reading), _place: place })
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, CallError> {
        let place = tokio::time::timeout(PATIENCE, self.places.clone().acquire_owned()).await;
        place.map_err(|_| CallError::TooManyReads)?.map_err(|_| CallError::Stopped)
    }
}

/// Pages of one state, for as long as somebody wants them.
pub struct Pages {
    /// Elsewhere while a page is read.
    reading: Option<Reading>,
    _place: OwnedSemaphorePermit,
}

impl Pages {
    /// The next page, which may be empty; none after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<Fact>>, CallError> {
        let Some(mut reading) = self.reading.take() else { return Ok(None) };
        let (reading, page) = apart(move || {
            let page = reading.page()?;
            Ok((reading, page))
        })
        .await?;
        self.reading = page.is_some().then_some(reading);
        Ok(page)
    }
}

/// Does something on a thread where it may take its time.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, CallError> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| CallError::Stopped)??)
}
