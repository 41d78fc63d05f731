//! Copies a part of the bundle to a host. A copy that broke off goes on where it stopped; what arrived is checked before it is
//! unpacked, and has its name only when it is whole.

use std::io::SeekFrom;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::sync::OnceCell;

use super::bundle::{BundlePart, HostBundle, PartKind};
use super::file::HostEntry;
use super::packed::{self, Packed};
use super::{looked, scripts, ssh};
use crate::clock;

/// How often a copy is tried: a connection may break, and a part that is damaged begins anew.
const ATTEMPTS: u32 = 3;
/// How long nothing may move.
const STALLED: Duration = Duration::from_secs(60);
/// How often the user hears how far it is.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// The bundle with its parts packed, each when the first host needs it.
#[derive(Debug)]
pub struct Parcel {
    /// The bundle.
    pub bundle: HostBundle,
    programs: OnceCell<Packed>,
    libtorch: OnceCell<Packed>,
}

impl Parcel {
    /// Nothing is packed yet.
    pub fn new(bundle: HostBundle) -> Self {
        Self { bundle, programs: OnceCell::new(), libtorch: OnceCell::new() }
    }

    fn part(&self, kind: PartKind) -> Option<&BundlePart> {
        match kind {
            PartKind::Programs => Some(&self.bundle.contents.programs),
            PartKind::Libtorch => self.bundle.contents.libtorch.as_ref(),
        }
    }

    async fn packed(&self, kind: PartKind, part: &BundlePart) -> Result<&Packed, String> {
        let cell = match kind {
            PartKind::Programs => &self.programs,
            PartKind::Libtorch => &self.libtorch,
        };
        let pack = || async { tokio::task::block_in_place(|| packed::pack(&self.bundle, part)) };
        cell.get_or_try_init(pack).await.map_err(|problem| problem.to_string())
    }

    /// Copies a part into `folder` of a host, and tells how far it is.
    pub async fn send(
        &self,
        wish: &HostEntry,
        folder: &str,
        kind: PartKind,
        say: &(dyn Fn(String) + Sync),
    ) -> Result<(), String> {
        let part = self.part(kind).ok_or("the bundle lacks that part")?;
        let packed = self.packed(kind, part).await?;
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            match send_rest(wish, folder, packed, part, say).await {
                Ok(true) => return Ok(()),
                Ok(false) => "what arrived was damaged".clone_into(&mut last),
                Err(reason) => last = reason,
            }
        }
        Err(format!("copying {} failed: {last}", kind.as_str()))
    }
}

/// Whether the part is there afterwards; if not, what arrived was damaged and is gone.
async fn send_rest(
    wish: &HostEntry,
    folder: &str,
    packed: &Packed,
    part: &BundlePart,
    say: &(dyn Fn(String) + Sync),
) -> Result<bool, String> {
    let said = ssh::run(wish, &scripts::receive(folder, &packed.sha), ssh::QUICK).await?;
    let there = looked::value(&said, "bytes").and_then(|bytes| bytes.trim().parse::<u64>().ok());
    let there = there.ok_or("it did not say how much has arrived")?;
    let (name, megabytes) = (part.kind.as_str(), packed.bytes >> 20);
    match there {
        0 => say(format!("copies {name}, {megabytes} MB")),
        _ => say(format!("copies {name}, from {} of {megabytes} MB on", there >> 20)),
    }
    if there < packed.bytes {
        stream(wish, folder, packed, there, &|sent| {
            say(format!("copies {name}, {} of {megabytes} MB", sent >> 20))
        })
        .await?;
    }
    let said = ssh::run(wish, &scripts::unpack(folder, &packed.sha, &part.name()), ssh::LONG).await?;
    Ok(looked::value(&said, "unpacked").is_some())
}

/// Sends the file from `from` on.
async fn stream(
    wish: &HostEntry,
    folder: &str,
    packed: &Packed,
    from: u64,
    tell: &(dyn Fn(u64) + Sync),
) -> Result<(), String> {
    let mut child = ssh::start(wish, &scripts::append(folder, &packed.sha))?;
    let mut input = child.stdin.take().ok_or("ssh takes no input")?;
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", packed.path.display());
    let mut file = File::open(&packed.path).await.map_err(unreadable)?;
    file.seek(SeekFrom::Start(from)).await.map_err(unreadable)?;
    let (mut buffer, mut sent, mut told) = (vec![0; 1 << 18], from, clock::now());
    loop {
        let length = file.read(&mut buffer).await.map_err(unreadable)?;
        if length == 0 {
            break;
        }
        match tokio::time::timeout(STALLED, input.write_all(&buffer[..length])).await {
            Err(_) => return Err(format!("nothing moved for {} s", STALLED.as_secs())),
            Ok(Err(_)) => break, // its last words say why
            Ok(Ok(())) => sent += length as u64,
        }
        if told.elapsed() >= SAY_EVERY {
            tell(sent);
            told = clock::now();
        }
    }
    drop(input);
    tokio::time::timeout(STALLED, ssh::ended(child)).await.map_err(|_| ssh::silent(STALLED))?
}
