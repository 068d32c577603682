//! Reaching what lies below the root of a store without following a link.
//!
//! A dataset may come from a stranger's archive, with links in it, and another process may put a
//! link where a directory was. A write or a deletion by path goes wherever the path leads at that
//! moment. So every step that changes something starts at a handle of the root and reaches its
//! directory from there. The root itself may be a link, because the caller named it.
//!
//! Linux does it in one call (`openat2`). Elsewhere, and where that call is not allowed, directories are
//! opened one by one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, statat};
use rustix::io::{Errno, retry_on_intr};

/// For a handle that is only used to reach what lies below it.
#[cfg(target_os = "linux")]
const REACH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const REACH: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// The permissions of a new file, and of a new directory, before the process's mask.
pub(super) const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// An open root.
#[derive(Debug)]
pub(super) struct Root {
    handle: OwnedFd,
}

/// An open directory, at or below the root.
#[derive(Debug)]
pub(super) enum Directory<'a> {
    Root(&'a OwnedFd),
    Below(OwnedFd),
}

impl AsFd for Directory<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(handle) => handle.as_fd(),
            Self::Below(handle) => handle.as_fd(),
        }
    }
}

impl Root {
    /// Opens the root, through whatever links lead to it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = retry_on_intr(|| rustix::fs::open(path, REACH, Mode::empty()))?;
        Ok(Self { handle })
    }

    /// Opens this name below the root. A link on the way, or at the end, is [`Errno::LOOP`].
    pub(super) fn open_at(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        // The kernel wants no mode where nothing is created.
        let mode = match flags.contains(OFlags::CREATE) {
            true => FILE_MODE,
            false => Mode::empty(),
        };
        match in_one_call(&self.handle, name, flags, mode) {
            Some(opened) => opened,
            None => step_by_step(&self.handle, name, flags, mode),
        }
    }

    /// Opens a directory, in order to reach what is in it.
    pub(super) fn directory(&self, name: &str) -> io::Result<Directory<'_>> {
        match name {
            "" => Ok(Directory::Root(&self.handle)),
            name => Ok(Directory::Below(self.open_at(name, REACH)?)),
        }
    }

    /// Opens the directory that holds this name, and gives the last segment of the name.
    pub(super) fn parent<'n>(&self, name: &'n str) -> io::Result<(Directory<'_>, &'n str)> {
        let (folder, name) = split(name);
        Ok((self.directory(folder)?, name))
    }

    /// Creates a directory and all above it, and returns the names of the new ones.
    pub(super) fn create_directory<'n>(&self, name: &'n str) -> io::Result<Vec<&'n str>> {
        let mut missing = Vec::new();
        let mut above = Directory::Root(&self.handle);
        for (path, segment) in steps(name) {
            let below = match enter(above.as_fd(), segment) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    missing.push(path);
                    match mkdirat(&above, segment, DIRECTORY_MODE) {
                        Ok(()) | Err(Errno::EXIST) => enter(above.as_fd(), segment),
                        Err(error) => Err(error.into()),
                    }
                }
                other => other,
            };
            above = Directory::Below(below?);
        }
        Ok(missing)
    }
}

/// The directory of a name (`""`: the root), and the last segment.
pub(super) fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

/// The names of a directory and of all above it, topmost first, each with its last segment.
pub(super) fn steps(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = name.match_indices('/').map(|(at, _)| at).chain([name.len()]);
    let paths = ends.filter_map(|end| name.get(..end)).filter(|path| !path.is_empty());
    paths.map(|path| (path, split(path).1))
}

/// Whether an error says that there is a link where none is followed.
pub(super) fn is_link(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Opens what is below a directory in one call, if this system has one for it.
#[cfg(target_os = "linux")]
fn in_one_call(
    root: &OwnedFd,
    name: &str,
    flags: OFlags,
    mode: Mode,
) -> Option<io::Result<OwnedFd>> {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{ResolveFlags, openat2};

    static UNKNOWN: AtomicBool = AtomicBool::new(false);
    if UNKNOWN.load(Ordering::Relaxed) {
        return None;
    }
    // With `O_NOFOLLOW` the kernel would report a link at the end as «not a directory».
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match retry_on_intr(|| openat2(root, name, flags, mode, within)) {
        Err(Errno::NOSYS) => {
            UNKNOWN.store(true, Ordering::Relaxed);
            None
        }
        // A sandbox that forbids the call, or another process that keeps renaming directories.
        Err(Errno::PERM | Errno::AGAIN) => None,
        other => Some(other.map_err(io::Error::from)),
    }
}

#[cfg(not(target_os = "linux"))]
fn in_one_call(_: &OwnedFd, _: &str, _: OFlags, _: Mode) -> Option<io::Result<OwnedFd>> {
    None
}

/// Opens what is below a directory, one directory after the other.
fn step_by_step(root: &OwnedFd, name: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let (folder, last) = split(name);
    let mut above = Directory::Root(root);
    for (_, segment) in steps(folder) {
        let below = enter(above.as_fd(), segment)?;
        above = Directory::Below(below);
    }
    let opened = retry_on_intr(|| openat(&above, last, flags | OFlags::NOFOLLOW, mode));
    opened.map_err(|error| unless_link(above.as_fd(), last, error))
}

/// Opens a directory in a directory.
fn enter(above: BorrowedFd<'_>, segment: &str) -> io::Result<OwnedFd> {
    let opened = retry_on_intr(|| openat(above, segment, REACH | OFlags::NOFOLLOW, Mode::empty()));
    opened.map_err(|error| unless_link(above, segment, error))
}

/// Systems report a link that is not followed with different errors, some of them as «not a
/// directory».
fn unless_link(above: BorrowedFd<'_>, name: &str, error: Errno) -> io::Error {
    if !matches!(error, Errno::LOOP | Errno::NOTDIR | Errno::MLINK) {
        return error.into();
    }
    match statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            Errno::LOOP.into()
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Opens a name in both ways, which must agree.
    fn both(root: &Root, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let slow = step_by_step(&root.handle, name, flags | OFlags::CLOEXEC, Mode::empty());
        let fast = root.open_at(name, flags);
        let errno = |opened: &io::Result<OwnedFd>| opened.as_ref().err().map(io::Error::kind);
        assert_eq!(errno(&slow), errno(&fast), "{name}");
        assert_eq!(slow.as_ref().err().map(is_link), fast.as_ref().err().map(is_link), "{name}");
        fast
    }

    #[test]
    fn links_are_refused_in_one_call_and_step_by_step() {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("d")).unwrap();
        fs::write(outside.path().join("d/file"), "x").unwrap();
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("a/b")).unwrap();
        fs::write(temp.path().join("a/b/file"), "x").unwrap();
        symlink(outside.path(), temp.path().join("out")).unwrap();
        symlink("b", temp.path().join("a/inside")).unwrap();
        symlink("file", temp.path().join("a/b/alias")).unwrap();
        symlink("nowhere", temp.path().join("dangling")).unwrap();
        let root = Root::open(temp.path()).unwrap();
        for name in ["a/b/file", "a/b", "a"] {
            both(&root, name, OFlags::RDONLY).unwrap();
        }
        let links = ["out", "out/d", "out/d/file", "a/inside", "a/inside/file", "a/b/alias"];
        for name in links.into_iter().chain(["dangling", "dangling/x"]) {
            assert!(is_link(&both(&root, name, OFlags::RDONLY).unwrap_err()), "{name}");
        }
        for name in ["out", "out/d", "a/inside"] {
            assert!(is_link(&both(&root, name, REACH).unwrap_err()), "{name}");
            assert!(is_link(&root.create_directory(name).unwrap_err()), "{name}");
        }
        let missing = both(&root, "a/never/file", OFlags::RDONLY).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let file = both(&root, "a/b/file/x", OFlags::RDONLY).unwrap_err();
        assert_eq!(file.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn the_root_itself_may_be_a_link() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("d")).unwrap();
        symlink("d", temp.path().join("alias")).unwrap();
        let root = Root::open(&temp.path().join("alias")).unwrap();
        assert_eq!(root.create_directory("x/y").unwrap(), ["x", "x/y"]);
        assert!(root.create_directory("x/y").unwrap().is_empty());
        assert!(temp.path().join("d/x/y").is_dir());
    }
}
