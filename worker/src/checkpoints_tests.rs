//! Stories of the folder of checkpoints: who finds what, what is passed over and why, and how much there may be.

use std::cell::RefCell;
use std::fs::FileTimes;

use togl_data::{Dataset, OpenOptions};
use togl_learning::{Device, EpochProgress, Flow, Job, Observer, train_fold};
use togl_sweeps::TrialConfig;

use super::*;

/// Keeps the checkpoint of every epoch.
#[derive(Default)]
struct Collector(Vec<Checkpoint>);

impl Observer for Collector {
    fn epoch(&mut self, _progress: &EpochProgress) -> Flow {
        Flow::Save
    }

    fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.0.push(checkpoint);
    }
}

/// The header of a fold, and its checkpoints after one, two and three epochs.
fn some(split: u32) -> (Header, Vec<Checkpoint>) {
    let dataset: Dataset =
        togl_data::open("cycles", &OpenOptions { graphs: Some(30), ..OpenOptions::default() }).unwrap();
    let trial = TrialConfig {
        dataset: "cycles".to_owned(),
        hidden_dim: 4,
        depth: 1,
        max_epochs: 3,
        ..TrialConfig::default()
    };
    let clock = || 0.0;
    let job = Job { trial: &trial, split, seed: 1, device: Device::Cpu, clock: &clock };
    let mut collector = Collector::default();
    train_fold(&job, &dataset, &mut collector).unwrap();
    (Header::of(&job, &dataset), collector.0)
}

fn folder() -> (tempfile::TempDir, Checkpoints) {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints { folder: folder.path().join("made/on/demand"), most_bytes: 1 << 30 };
    (folder, checkpoints)
}

/// The epochs of the newest checkpoint, and what was said about others.
fn newest(checkpoints: &Checkpoints, job: &Header) -> (Option<u32>, Vec<String>) {
    let said = RefCell::new(Vec::new());
    let found = checkpoints.newest(job, &|text| said.borrow_mut().push(text.to_owned()));
    (found.map(|checkpoint| checkpoint.header.epochs), said.into_inner())
}

#[test]
fn the_checkpoint_that_came_furthest_is_found_of_whichever_attempt() {
    let (_kept, checkpoints) = folder();
    let (job, states) = some(0);
    assert_eq!(newest(&checkpoints, &job), (None, vec![]), "a folder that is not there holds nothing");
    let [one, two, three]: [Checkpoint; 3] = states.try_into().unwrap();
    checkpoints.save(Attempt(1), one).unwrap();
    checkpoints.save(Attempt(1), three).unwrap();
    checkpoints.save(Attempt(2), two).unwrap();
    assert_eq!(checkpoints.usage().files, 2, "one file an attempt");
    assert_eq!(newest(&checkpoints, &job), (Some(3), vec![]));
}

#[test]
fn torn_and_foreign_files_are_passed_over_with_the_reason() {
    let (_kept, checkpoints) = folder();
    let (job, mut states) = some(0);
    let (other_job, mut other_states) = some(1);
    let name = |attempt: u32| format!("{}.{attempt}{SUFFIX}", stem(job.fold));
    checkpoints.save(Attempt(1), states.remove(0)).unwrap();
    let whole = fs::read(checkpoints.folder.join(name(1))).unwrap();
    fs::write(checkpoints.folder.join(name(2)), &whole[..whole.len() / 2]).unwrap();
    let foreign = other_states.remove(2).to_bytes().unwrap();
    fs::write(checkpoints.folder.join(name(3)), foreign).unwrap();
    fs::write(checkpoints.folder.join(name(4)), b"").unwrap();
    let (found, said) = newest(&checkpoints, &job);
    assert_eq!(found, Some(1));
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains(".2.safetensors") && said[0].contains("torn"), "{said:?}");
    assert!(said[1].contains("it is for the fold"), "{said:?}");
    assert_eq!(newest(&checkpoints, &other_job).0, None, "names say whose it is");
}

#[test]
fn what_is_acknowledged_goes_with_all_its_attempts_and_others_stay() {
    let (_kept, checkpoints) = folder();
    let ((job, states), (other, mut other_states)) = (some(0), some(1));
    for (attempt, state) in (1..).zip(states) {
        checkpoints.save(Attempt(attempt), state).unwrap();
    }
    checkpoints.save(Attempt(1), other_states.remove(0)).unwrap();
    checkpoints.remove(job.fold).unwrap();
    assert_eq!(newest(&checkpoints, &job).0, None);
    assert_eq!(newest(&checkpoints, &other).0, Some(1));
    checkpoints.remove(job.fold).unwrap();
}

#[test]
fn the_oldest_make_room_and_forgotten_rests_are_cleared() {
    let (_kept, mut checkpoints) = folder();
    let mut states: Vec<Checkpoint> = some(0).1;
    let size = states[2].to_bytes().unwrap().len() as u64;
    checkpoints.most_bytes = 2 * size + size / 2;
    let age = |name: &str, hours: u64| {
        let path = checkpoints.folder.join(name);
        let file = fs::File::options().append(true).create(true).open(path).unwrap();
        let changed = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(3600 * hours);
        file.set_times(FileTimes::new().set_modified(changed)).unwrap();
    };
    let name =
        |attempt: u32, states: &[Checkpoint]| format!("{}.{attempt}{SUFFIX}", stem(states[0].header.fold));
    let [first, second] = [1, 2].map(|attempt| name(attempt, &states));
    checkpoints.save(Attempt(1), states.remove(0)).unwrap();
    checkpoints.save(Attempt(2), states.remove(0)).unwrap();
    age(&first, 3);
    age(&second, 2);
    age("rest.partial", 2);
    age("being-written.partial", 0);
    checkpoints.save(Attempt(3), states.remove(0)).unwrap();
    let left = |name: &str| checkpoints.folder.join(name).exists();
    assert!(!left(&first) && left(&second), "the oldest goes, the next fits");
    assert!(!left("rest.partial") && left("being-written.partial"));
    assert!(checkpoints.usage().bytes <= checkpoints.most_bytes);
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"in the way").unwrap();
    let checkpoints = Checkpoints { folder: file.join("below"), most_bytes: 1 << 30 };
    let error = checkpoints.save(Attempt(1), some(0).1.remove(0)).unwrap_err().to_string();
    assert!(error.contains("below"), "{error}");
    assert_eq!(checkpoints.usage(), Usage::default());
}

#[test]
fn what_came_from_elsewhere_is_one_among_those_of_this_machine_and_may_be_of_no_use() {
    let (_folder, checkpoints) = folder();
    let (header, mut all) = some(0);
    let far = |checkpoints: &Checkpoints| checkpoints.furthest(header.fold).map(|(epochs, _)| epochs);
    assert_eq!(far(&checkpoints), None);
    let further = all.pop().unwrap().to_bytes().unwrap();
    checkpoints.save(Attempt(1), all.remove(0)).unwrap();
    assert_eq!(far(&checkpoints), Some(1));
    checkpoints.receive(header.fold, &further).unwrap();
    assert_eq!(checkpoints.furthest(header.fold), Some((3, further.clone())));
    let said = RefCell::new(Vec::new());
    let newest = || {
        let found = checkpoints.newest(&header, &|text| said.borrow_mut().push(text.to_owned()));
        found.map(|checkpoint| checkpoint.header.epochs)
    };
    assert_eq!((newest(), said.borrow().len()), (Some(3), 0));
    // Its header is whole, so it looks further than it is; whoever would go on from it finds out.
    let mut damaged = further;
    *damaged.last_mut().unwrap() ^= 1;
    checkpoints.receive(header.fold, &damaged).unwrap();
    assert_eq!((newest(), said.borrow().len()), (Some(1), 1));
    checkpoints.receive(header.fold, b"torn").unwrap();
    assert_eq!((far(&checkpoints), newest()), (Some(1), Some(1)));
    checkpoints.remove(header.fold).unwrap();
    assert_eq!((far(&checkpoints), checkpoints.usage()), (None, Usage::default()));
}
