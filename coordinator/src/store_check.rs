//! The check that a coordinator makes of its own store after it has started, on a thread of its own and at leisure, so that
//! damage is found while there are still backups from before. Tells the log and the [`Liveness`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::liveness::Liveness;
use crate::store::address::StoreAddress;
use crate::store::check::{self, Checked};

/// The rest after each piece: a megabyte of a file, a thousand rows of a database.
const REST: Duration = Duration::from_millis(20);

/// Damaged places that are in the log.
const LOGGED: usize = 20;

/// A check that ends soon after whoever holds this.
pub(crate) struct Checking(Arc<AtomicBool>);

impl Drop for Checking {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Begins a check.
pub(crate) fn start(store: StoreAddress, liveness: Arc<Liveness>) -> io::Result<Checking> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    // Not joined: it changes nothing, and a server that does not answer must not keep a coordinator from ending.
    std::thread::Builder::new().name("togl-check".to_owned()).spawn(move || {
        let mut go_on = || {
            std::thread::sleep(REST);
            !told.load(Ordering::Relaxed)
        };
        let checked = check::check_quietly(&store, &mut go_on);
        if go_on() {
            tell(&store, checked, &liveness);
        }
    })?;
    Ok(Checking(stop))
}

fn tell(store: &StoreAddress, checked: Result<Checked, crate::store::StoreError>, liveness: &Liveness) {
    match checked {
        Ok(checked) if checked.is_whole() => {
            tracing::info!(%store, "the store was checked and is whole");
            liveness.checked(0);
        }
        Ok(checked) => {
            for damage in checked.damage.iter().take(LOGGED) {
                tracing::error!(%store, %damage, "the store is damaged");
            }
            let places = checked.damage.len() as u64 + checked.unnamed;
            tracing::error!(
                %store, places,
                "the store is damaged; `togl check` names all of it, `togl restore FILE --replace` puts a backup in its place"
            );
            liveness.checked(places);
        }
        Err(error) => tracing::warn!(%store, %error, "the store could not be checked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::store::contract::filled_sqlite;

    /// The liveness after a check of this store.
    fn checked(store: StoreAddress) -> Arc<Liveness> {
        let liveness = Arc::new(Liveness::new(Arc::new(ManualClock::default())));
        let _checking = start(store, liveness.clone()).unwrap();
        while liveness.store().0 == 0 {
            std::thread::yield_now();
        }
        liveness
    }

    #[test]
    fn a_page_that_nobody_has_read_yet_is_found_after_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        filled_sqlite(&path, 20);
        assert!(checked(StoreAddress::Sqlite(path.clone())).is_well());
        let mut file = std::fs::read(&path).unwrap();
        let at = file.len() - 2_000;
        file[at] ^= 1;
        std::fs::write(&path, file).unwrap();
        let liveness = checked(StoreAddress::Sqlite(path));
        assert!(!liveness.is_well() && liveness.store().1 > 0, "{liveness:?}");
    }
}
