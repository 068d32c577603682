//! Listing a directory tree.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use rustix::fs::{AtFlags, Dir as Entries, FileType, Mode, OFlags, Stat, fstat, statat};
use rustix::io::Errno;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::File;
use super::beneath::{Root, is_link};
use super::read::meta;
use crate::backend::{Dir, Links, Meta};
use crate::error::{Error, Result};

/// How far the walk may run ahead of the reader of the list.
const AHEAD: usize = 1024;

/// How many links may lead to a directory, one in the other. More than a few are a trap: a handful of
/// directories full of links to each other has more paths than anything could list.
const LINKS_MAX: usize = 8;

/// All files below a directory.
///
/// A symbolic link to a file is listed as that file. The caller says what becomes of one to a
/// directory.
pub(super) fn walk(directory: File, links: Links) -> BoxStream<'static, Result<Meta>> {
    let (sender, receiver) = channel(AHEAD);
    // Detached: it ends with the tree, or when the list is dropped and nothing receives any more.
    tokio::task::spawn_blocking(move || {
        let walk = Walk { root: directory.root.clone(), links, sender };
        walk.run(directory);
    });
    stream::unfold(receiver, |mut receiver: Receiver<_>| async {
        receiver.recv().await.map(|item| (item, receiver))
    })
    .boxed()
}

/// The entries of a directory, also when it is reached through a link. Links in it that lead to
/// directories are skipped.
pub(super) fn children(directory: &File) -> Result<Dir> {
    let (mut dirs, mut objects, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let visited = open(&directory.path).and_then(|open| {
        visit(open, &directory.name, &mut |name, found| {
            match found {
                Found::File(stat) => objects.push(meta(name, &stat)),
                Found::Directory => dirs.push(name),
                Found::DeadLink | Found::Other(_) => others.push(name),
                Found::LinkedDirectory => {}
            }
            true
        })
    });
    match visited {
        Err(error) if !gone(&error) => Err(directory.error("list", error)),
        _ => Ok(Dir { dirs, objects, others }.sorted()),
    }
}

struct Walk {
    root: Arc<Path>,
    links: Links,
    sender: Sender<Result<Meta>>,
}

/// A directory that is still to be listed.
struct Pending {
    name: String,
    above: Option<Arc<Above>>,
    /// How many links lead there.
    links: usize,
}

/// A directory on the way to another.
struct Above {
    id: (u64, u64),
    above: Option<Arc<Above>>,
}

impl Above {
    fn has(&self, id: (u64, u64)) -> bool {
        let mut at = Some(self);
        while let Some(above) = at {
            if above.id == id {
                return true;
            }
            at = above.above.as_deref();
        }
        false
    }
}

impl Walk {
    fn run(&self, first: File) {
        let mut pending = vec![Pending { name: first.name, above: None, links: 0 }];
        while let Some(next) = pending.pop() {
            let directory = File::new(&self.root, &next.name);
            let listed = self.directory(&directory, &next, &mut pending);
            let go_on = match listed {
                Ok(go_on) => go_on,
                Err(Stop::Error(error)) => self.sender.blocking_send(Err(error)).is_ok(),
                Err(Stop::Io(error)) if gone(&error) => true,
                Err(Stop::Io(error)) if is_link(&error) && self.links == Links::Skip => true,
                Err(Stop::Io(error)) => {
                    self.sender.blocking_send(Err(directory.error("list", error))).is_ok()
                }
            };
            if !go_on {
                return;
            }
        }
    }

    /// Lists one directory. False if nothing wants the rest.
    fn directory(
        &self,
        directory: &File,
        at: &Pending,
        pending: &mut Vec<Pending>,
    ) -> std::result::Result<bool, Stop> {
        let follow = self.links == Links::Follow;
        let open = match follow || directory.name.is_empty() {
            true => open(&directory.path)?,
            false => Root::open(&self.root)?.open_at(&directory.name, OFlags::DIRECTORY)?,
        };
        let above = match follow {
            true => Some(self.enter(directory, at, &open)?),
            false => None,
        };
        let mut trouble = None;
        let go_on = visit(open, &directory.name, &mut |name, found| {
            let links = at.links + usize::from(matches!(found, Found::LinkedDirectory));
            let item = match (found, self.links) {
                (Found::File(stat), _) => Ok(meta(name, &stat)),
                (Found::Directory, _) | (Found::LinkedDirectory, Links::Follow) => {
                    pending.push(Pending { name, above: above.clone(), links });
                    return true;
                }
                (Found::LinkedDirectory, Links::Refuse) => {
                    let linked = File::new(&self.root, &name).linked();
                    // If there is none, it is gone again.
                    let Some(linked) = linked else { return true };
                    Err(linked)
                }
                // A chunk may belong in its place.
                (Found::Other(sort), Links::Follow) => {
                    Err(File::new(&self.root, &name).irregular(sort))
                }
                // To a reader of the object it is missing.
                (Found::DeadLink, _)
                | (Found::LinkedDirectory, Links::Skip)
                | (Found::Other(_), _) => return true,
            };
            match item {
                Ok(meta) => self.sender.blocking_send(Ok(meta)).is_ok(),
                Err(error) => {
                    trouble = Some(error);
                    false
                }
            }
        })?;
        match trouble {
            Some(error) => Err(Stop::Error(error)),
            None => Ok(go_on),
        }
    }

    /// Fails on a cycle of links, and on too many.
    fn enter(&self, directory: &File, at: &Pending, open: &OwnedFd) -> Result<Arc<Above>, Stop> {
        let stat = fstat(open).map_err(io::Error::from)?;
        let id = (stat.st_dev as u64, stat.st_ino as u64);
        let circle = at.above.as_ref().is_some_and(|above| above.has(id));
        if circle || at.links > LINKS_MAX {
            return Err(Stop::Error(Error::Corrupt {
                file: directory.path.display().to_string(),
                what: "links on the way".to_owned(),
                expected: format!("at most {LINKS_MAX}, and none that leads back"),
                found: if circle { "a circle".to_owned() } else { format!("{}", at.links) },
            }));
        }
        Ok(Arc::new(Above { id, above: at.above.clone() }))
    }
}

/// Why a directory is not listed to its end.
enum Stop {
    Io(io::Error),
    Error(Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What a name in a directory stands for.
enum Found {
    File(Stat),
    Directory,
    LinkedDirectory,
    DeadLink,
    Other(&'static str),
}

/// Opens a directory by its path, for listing.
fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Shows every entry of a directory, whose name in the store is `prefix`. False if told to stop.
fn visit(
    directory: OwnedFd,
    prefix: &str,
    show: &mut impl FnMut(String, Found) -> bool,
) -> io::Result<bool> {
    let mut entries = Entries::new(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        // A name that is not Unicode is none of ours, and no path can express it.
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name == "." || name == ".." {
            continue;
        }
        let stat = |flags| statat(entries.fd()?, entry.file_name(), flags);
        let found = match look(entry.file_type(), stat) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
                if stat(AtFlags::SYMLINK_NOFOLLOW).is_ok() =>
            {
                Found::DeadLink
            }
            // A list is no snapshot.
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        if !show(name, found) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What an entry is. The directory may know its kind already.
fn look(
    kind: FileType,
    stat: impl Fn(AtFlags) -> rustix::io::Result<Stat>,
) -> rustix::io::Result<Found> {
    let (kind, known) = match kind {
        FileType::Directory => return Ok(Found::Directory),
        FileType::Symlink => (FileType::Symlink, None),
        _ => {
            let known = stat(AtFlags::SYMLINK_NOFOLLOW)?;
            (FileType::from_raw_mode(known.st_mode), Some(known))
        }
    };
    let (linked, known) = match (kind, known) {
        (FileType::Symlink, _) | (_, None) => (true, stat(AtFlags::empty())?),
        (_, Some(known)) => (false, known),
    };
    Ok(match FileType::from_raw_mode(known.st_mode) {
        FileType::RegularFile => Found::File(known),
        FileType::Directory if linked => Found::LinkedDirectory,
        FileType::Directory => Found::Directory,
        FileType::Fifo => Found::Other("a named pipe"),
        FileType::Socket => Found::Other("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Found::Other("a device"),
        _ => Found::Other("something else"),
    })
}

/// Whether an entry is gone or never existed: a list is no snapshot.
fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
