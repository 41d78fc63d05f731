//! What every back end must remember of what people did.

use togl_scheduler::{About, Act, By, Change, Steered};

use super::super::Reader;
use super::super::delete::Deletion;
use super::super::history::{ACTS, Acted};
use super::Make;
use super::script::{Script, submission, sweep, worker};

fn steered(act: Act, about: About, reason: &str) -> Change {
    let by = By { name: "wall\0 'ünï'".to_owned(), reason: reason.to_owned() };
    Change::Steered(Box::new(Steered { by, act, about, detail: "detail \u{1b}".to_owned() }))
}

fn told(reader: &dyn Reader, of: Option<&str>) -> Vec<(String, String, String)> {
    let acts = reader.acts(of.map(sweep).as_ref()).unwrap();
    assert!(acts.iter().all(|act| act.at > 0 && act.by == "wall\0 'ünï'" && act.detail == "detail \u{1b}"));
    acts.into_iter().map(|Acted { act, about, reason, .. }| (act, about, reason)).collect()
}

pub(super) fn who_steered_is_told_in_order_with_the_reason(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    for name in ["s", "t"] {
        script.tell(submission(name, 0..2));
    }
    let acts = [
        steered(Act::Submit, About::Sweep(sweep("s")), ""),
        steered(Act::Pause, About::Sweep(sweep("t")), "Robert'); DROP TABLE steering; --"),
        steered(Act::Drain, About::Worker(worker("s")), "a\0b"),
        steered(Act::Settle, About::Data("s\0".to_owned()), "日本語"),
        steered(Act::Resume, About::Sweep(sweep("s")), "again"),
    ];
    script.store.commit(&acts[..2]).unwrap();
    script.store.commit(&acts[2..]).unwrap();
    assert_eq!(script.store.load().unwrap(), script.scheduler.snapshot(), "nobody needs them to start");
    script.store.close().unwrap();
    let reader = backend.open().reader().unwrap();
    let line = |act: &str, about: &str, reason: &str| (act.to_owned(), about.to_owned(), reason.to_owned());
    assert_eq!(told(reader.as_ref(), Some("s")), [line("submit", "s", ""), line("resume", "s", "again")]);
    let all = told(reader.as_ref(), None);
    assert_eq!(all.len(), 5);
    assert_eq!(all[1], line("pause", "t", "Robert'); DROP TABLE steering; --"));
    assert_eq!(all[2..4], [line("drain", "s", "a\0b"), line("settle", "s\0", "日本語")]);
    assert_eq!(told(reader.as_ref(), Some("nobody")), []);
}

pub(super) fn acts_of_a_deleted_sweep_go_with_it(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..2));
    let many: Vec<Change> =
        (0..ACTS + 5).map(|n| steered(Act::Retry, About::Sweep(sweep("s")), &n.to_string())).collect();
    script.store.commit(&many).unwrap();
    let reader = script.store.reader().unwrap();
    let acts = told(reader.as_ref(), None);
    assert_eq!((acts.len(), acts[0].2.as_str()), (ACTS, "5"), "of too many the last ones");
    drop(reader); // who reads holds what is to be deleted
    let Some(address) = backend.address() else { return }; // what is in memory goes by itself
    script.store.commit(&[steered(Act::Drain, About::Worker(worker("s")), "")]).unwrap();
    script.store.close().unwrap();
    Deletion::prepare(&address, &sweep("s")).unwrap().carry_out().unwrap();
    let left = told(backend.open().reader().unwrap().as_ref(), None);
    assert_eq!(left.iter().map(|(act, ..)| act.as_str()).collect::<Vec<_>>(), ["drain"]);
}
