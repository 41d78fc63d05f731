//! Stories of the folder: what is in it after uploads that were whole, torn, late and interrupted, and after a restart.

use togl_sweeps::TrialId;

use super::*;

struct World {
    folder: tempfile::TempDir,
    room: HeldCheckpoints,
}

fn fold(split: u32) -> FoldKey {
    FoldKey { trial: TrialId::from_bytes([9; 16]), split, seed: u64::MAX }
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let room = HeldCheckpoints::open(&folder.path().join("held"), 1_000).unwrap();
        Self { folder, room }
    }

    fn restart(&mut self) {
        self.room = HeldCheckpoints::open(&self.folder.path().join("held"), 1_000).unwrap();
        self.check();
    }

    fn bring(&self, split: u32, epochs: u32, bytes: &[u8]) -> Result<(), Declined> {
        let mut upload = self.room.begin(fold(split), Held::of(epochs, bytes)).unwrap();
        bytes.chunks(3).for_each(|piece| upload.take(piece).unwrap());
        let kept = upload.keep().unwrap();
        self.check();
        kept
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("held")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The folder holds what the book says, byte for byte, and nothing else.
    fn check(&self) {
        let folds = self.room.folds();
        assert_eq!(self.files().len(), folds.len(), "{:?}", self.files());
        for fold in folds {
            let (held, mut file) = self.room.read(fold).unwrap();
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes).unwrap();
            assert_eq!(Held::of(held.epochs, &bytes), held);
        }
    }

    fn epochs(&self, split: u32) -> Option<u32> {
        self.room.held(&fold(split)).map(|held| held.epochs)
    }
}

#[test]
fn the_furthest_checkpoint_of_a_fold_outlives_restarts_until_its_result_is_there() {
    let mut world = World::new();
    world.bring(0, 3, b"three").unwrap();
    world.bring(0, 5, b"five").unwrap();
    assert_eq!(world.bring(0, 4, b"four"), Err(Declined::NotFurther { epochs: 5 }));
    world.bring(1, 1, b"one").unwrap();
    world.restart();
    assert_eq!((world.epochs(0), world.epochs(1), world.room.size()), (Some(5), Some(1), (2, 7)));
    world.room.forget(&fold(0));
    world.check();
    world.room.review(Timestamp(0), &[(fold(1), Use::Over)]);
    world.check();
    assert_eq!(world.room.size(), (0, 0));
    world.restart();
    assert_eq!(world.room.size(), (0, 0));
}

#[test]
fn what_is_torn_or_interrupted_leaves_nothing_and_what_was_held_stays() {
    let world = World::new();
    world.bring(0, 3, b"three").unwrap();
    let promised = Held::of(4, b"promised");
    for came in [&b"promise"[..], b"promisee", b""] {
        let mut upload = world.room.begin(fold(0), promised).unwrap();
        upload.take(came).unwrap();
        assert!(matches!(upload.keep(), Err(UploadError::Torn(_))));
        world.check();
    }
    let mut upload = world.room.begin(fold(0), promised).unwrap();
    upload.take(b"promised").unwrap();
    assert!(matches!(upload.take(b"!"), Err(UploadError::Torn(Torn::Longer(8)))));
    drop(upload);
    world.check();
    assert_eq!(world.epochs(0), Some(3));
}

#[test]
fn the_same_checkpoint_twice_at_once_is_kept_once() {
    let world = World::new();
    let begin = || {
        let mut upload = world.room.begin(fold(0), Held::of(2, b"two")).unwrap();
        upload.take(b"two").unwrap();
        upload
    };
    let (first, second) = (begin(), begin());
    assert_eq!(first.keep().unwrap(), Ok(()));
    assert_eq!(second.keep().unwrap(), Err(Declined::NotFurther { epochs: 2 }));
    world.check();
    assert_eq!(world.epochs(0), Some(2));
}

#[test]
fn a_process_that_ended_at_any_point_leaves_a_folder_that_is_put_in_order() {
    let mut world = World::new();
    world.bring(0, 3, b"three").unwrap();
    world.bring(1, 3, b"three").unwrap();
    let held = world.folder.path().join("held");
    // Between the new name and the end of the old one; a draft; a file that lost its end; names that are none.
    fs::write(held.join(name(fold(0), Held::of(7, b"seven"))), b"seven").unwrap();
    fs::write(held.join(".x.0123.partial"), b"half").unwrap();
    fs::write(held.join(name(fold(1), Held::of(9, b"nine"))), b"nin").unwrap();
    fs::write(held.join("nonsense.checkpoint"), b"?").unwrap();
    world.restart();
    assert_eq!((world.epochs(0), world.epochs(1), world.room.size()), (Some(7), Some(3), (2, 10)));
}

#[test]
fn only_so_many_come_at_once() {
    let world = World::new();
    let places: Vec<_> = std::iter::from_fn(|| world.room.place()).take(1_000).collect();
    assert_eq!(places.len(), AT_ONCE);
    drop(places);
    assert!(world.room.place().is_some());
}
