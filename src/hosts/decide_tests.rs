//! What is done on a host, and what is refused, case by case.

use super::*;

fn wish() -> HostEntry {
    HostEntry {
        host: "gpu1".to_owned(),
        slots: None,
        device: HostDevice::Auto,
        devices: Vec::new(),
        torch: None,
        folder: "~/togl".to_owned(),
        ssh_options: Vec::new(),
        worker_options: Vec::new(),
    }
}

fn looked() -> Looked {
    Looked {
        system: "Linux".to_owned(),
        arch: "x86_64".to_owned(),
        glibc: Some((2, 36)),
        folder: "/home/me/togl".to_owned(),
        free: 8 << 30,
        writable: true,
        ..Looked::default()
    }
}

fn bundle() -> Contents {
    let part = |kind, bytes| BundlePart { kind, digest: "d1".to_owned(), bytes };
    Contents {
        arch: "x86_64".to_owned(),
        glibc: (2, 34),
        programs: part(PartKind::Programs, 40 << 20),
        libtorch: Some(part(PartKind::Libtorch, 440 << 20)),
        cuda: false,
    }
}

fn common() -> Common {
    Common { join: "lab:7447".to_owned(), token_digest: "t".to_owned() }
}

fn torch(version: &str, cuda: bool) -> Torch {
    Torch { asked: false, cuda, version: version.to_owned(), path: format!("/opt/{version}/torch") }
}

fn planned(wish: &HostEntry, looked: &Looked) -> HostPlan {
    decide(wish, looked, &bundle(), &common()).unwrap()
}

fn refused(wish: &HostEntry, looked: &Looked) -> HostRefusal {
    decide(wish, looked, &bundle(), &common()).unwrap_err()
}

#[test]
fn a_bare_host_gets_everything_and_a_host_that_has_it_nothing() {
    let first = planned(&wish(), &looked());
    let all = [
        Step::Send(PartKind::Programs),
        Step::Send(PartKind::Libtorch),
        Step::Install(Libtorch::Sent),
        Step::Stop,
        Step::Start { systemd: false },
    ];
    assert_eq!(first.steps, all);
    let done = Looked {
        installed: Some(first.key.clone()),
        parts: vec!["programs-d1".to_owned(), "libtorch-d1".to_owned()],
        start: Some(scripts::sha256(first.start.as_bytes())),
        token: Some("t".to_owned()),
        running: true,
        free: 0, // nothing is sent, so it does not matter
        ..looked()
    };
    assert_eq!(planned(&wish(), &done).steps, []);
    let restart = [Step::Stop, Step::Start { systemd: false }];
    assert_eq!(planned(&wish(), &Looked { running: false, ..done.clone() }).steps, restart);
    assert_eq!(planned(&wish(), &Looked { token: Some("old".to_owned()), ..done.clone() }).steps, restart);
    assert_eq!(planned(&HostEntry { slots: Some(3), ..wish() }, &done).steps, restart);
}

#[test]
fn only_the_part_that_differs_is_sent() {
    let has_libtorch = Looked { parts: vec!["libtorch-d1".to_owned()], ..looked() };
    let steps = planned(&wish(), &has_libtorch).steps;
    assert_eq!(steps[..2], [Step::Send(PartKind::Programs), Step::Install(Libtorch::Sent)]);
}

#[test]
fn the_right_torch_of_the_host_is_linked_instead_of_sent() {
    let host = Looked { torches: vec![torch("2.4.0", true), torch("2.13.0+cpu", false)], ..looked() };
    let steps = planned(&wish(), &host).steps;
    let found = Libtorch::Found("/opt/2.13.0+cpu/torch".to_owned());
    assert_eq!(steps[..2], [Step::Send(PartKind::Programs), Step::Install(found)]);
    let other = Looked { torches: vec![torch("2.13.01", false)], ..looked() };
    assert!(planned(&wish(), &other).steps.contains(&Step::Send(PartKind::Libtorch)));
}

#[test]
fn a_host_with_a_gpu_never_trains_on_its_cpu_unless_the_file_says_so() {
    let gpu = Looked { driver: Some("580.65".to_owned()), ..looked() };
    let said = refused(&wish(), &gpu);
    assert!(said.reason.contains("NVIDIA driver (580.65) and would train on its CPU"), "{said:?}");
    assert!(said.hint.contains("torch==2.13.0 with CUDA") && said.hint.contains("device: cpu"), "{said:?}");
    let half = Looked { torches: vec![torch("2.13.0", false)], ..gpu.clone() };
    assert!(refused(&wish(), &half).reason.contains("torch 2.13.0 without CUDA"));
    let whole = Looked { torches: vec![torch("2.13.0+cu130", true)], ..gpu.clone() };
    assert!(planned(&wish(), &whole).start.contains("'--device' 'cuda'"));
    let on_cpu = planned(&HostEntry { device: HostDevice::Cpu, ..wish() }, &gpu);
    assert!(on_cpu.start.contains("'--device' 'cpu'"));
    let sends = decide(&wish(), &gpu, &Contents { cuda: true, ..bundle() }, &common()).unwrap();
    assert!(sends.steps.contains(&Step::Send(PartKind::Libtorch)));
}

#[test]
fn a_gpu_that_was_asked_for_must_be_there() {
    let said = refused(&HostEntry { device: HostDevice::Cuda, ..wish() }, &looked());
    assert!(said.reason.contains("no NVIDIA driver"), "{said:?}");
    assert!(refused(&HostEntry { devices: vec![0], ..wish() }, &looked()).reason.contains("`devices`"));
}

#[test]
fn a_driver_that_is_too_old_is_refused_before_anything_is_sent() {
    let with = |driver: &str| Looked {
        driver: Some(driver.to_owned()),
        torches: vec![torch("2.13.0+cu130", true)],
        ..looked()
    };
    for asked in
        [wish(), HostEntry { device: HostDevice::Cuda, ..wish() }, HostEntry { devices: vec![0], ..wish() }]
    {
        let said = refused(&asked, &with("535.104.05"));
        assert_eq!(said.reason, "its NVIDIA driver is 535.104.05, and the worker's CUDA needs 580 or newer");
        assert!(said.hint.contains("device: cpu"), "{said:?}");
    }
    assert!(planned(&wish(), &with("580.65.06")).start.contains("'--device' 'cuda'"));
    assert!(planned(&wish(), &with("")).start.contains("'--device' 'cuda'"));
    assert!(
        planned(&HostEntry { device: HostDevice::Cpu, ..wish() }, &with("535.104.05"))
            .start
            .contains("'--device' 'cpu'")
    );
    let of_the_worker = format!("const DRIVER_NEEDED: u32 = {OLDEST_DRIVER};");
    assert!(include_str!("../../worker/src/doctor.rs").contains(&of_the_worker));
}

#[test]
fn the_torch_that_was_named_is_the_one_or_it_is_a_failure() {
    let named = HostEntry { torch: Some("~/ml".to_owned()), ..wish() };
    let said = refused(&named, &Looked { torches: vec![torch("2.13.0", true)], ..looked() });
    assert!(said.reason.contains("there is no torch in ~/ml"), "{said:?}");
    let other = Torch { asked: true, ..torch("2.4.0", true) };
    let said = refused(&named, &Looked { torches: vec![other], ..looked() });
    assert!(said.reason.contains("torch 2.4.0 is in") && said.hint.contains("torch==2.13.0"), "{said:?}");
    let right = Torch { asked: true, ..torch("2.13.0", false) };
    let steps = planned(&named, &Looked { torches: vec![right.clone()], ..looked() }).steps;
    assert!(steps.contains(&Step::Install(Libtorch::Found(right.path))));
}

#[test]
fn a_host_that_cannot_do_it_is_refused_with_its_reason() {
    let cases = [
        (Looked { arch: "aarch64".to_owned(), ..looked() }, "Linux on aarch64"),
        (Looked { system: "Darwin".to_owned(), ..looked() }, "Darwin"),
        (Looked { glibc: Some((2, 31)), ..looked() }, "its glibc is 2.31, and the worker needs 2.34"),
        (Looked { glibc: None, ..looked() }, "no glibc"),
        (
            Looked { free: 100 << 20, ..looked() },
            "not enough disk: /home/me/togl has 100 MB free, 1024 are needed",
        ),
        (Looked { writable: false, ..looked() }, "cannot be written"),
        (Looked { lacks: vec!["tar".to_owned()], ..looked() }, "it lacks tar"),
        (Looked { folder: "/home/my name".to_owned(), ..looked() }, "unusual letters"),
    ];
    for (host, reason) in cases {
        let said = refused(&wish(), &host);
        assert!(said.reason.contains(reason), "{said:?}");
    }
    let empty = Contents { libtorch: None, ..bundle() };
    let said = decide(&wish(), &looked(), &empty, &common()).unwrap_err();
    assert!(said.hint.contains("install torch==2.13.0 there"), "{said:?}");
}

#[test]
fn systemd_keeps_a_worker_only_where_it_outlives_the_login() {
    let last = |systemd, linger| {
        let plan = planned(&wish(), &Looked { systemd, linger, ..looked() });
        (plan.steps.last().cloned().unwrap(), plan.notes.len())
    };
    assert_eq!(last(true, true), (Step::Start { systemd: true }, 0));
    assert_eq!(last(true, false), (Step::Start { systemd: false }, 1));
    assert_eq!(last(false, false), (Step::Start { systemd: false }, 0));
}

#[test]
fn the_version_of_torch_is_the_one_that_the_worker_is_built_with() {
    let built_with = format!("VERSION={TORCH}\n");
    assert!(include_str!("../../deploy/bootstrap").contains(&built_with));
}
