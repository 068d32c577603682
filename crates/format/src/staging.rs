//! Where a dataset is written until it is complete.
//!
//! In a directory: aside, in `.NAME.chunkyard/data`. One rename then puts it in its place. So a dataset is
//! complete or absent, and a dataset that is replaced is the old one until the moment it is the new one.
//!
//! On an object store: in its place, with the metadata last and the root's metadata at the very end. Without
//! metadata no reader takes the chunks for an array. Nothing can be replaced there in one step, so nothing is
//! replaced.
//!
//! Workers of other processes write beside the data, in a directory per attempt at a pack
//! (`.NAME.chunkyard/attempts/ID`), and the sink takes the pack over from there; on an object store they
//! write in place.

use chunkyard_store::{Error, Kind, Lock, Noun, Result, Store, TEMP_PREFIX};
use futures::TryStreamExt;

use crate::joined::has_plan;
use crate::{CreateOptions, JOURNAL_PLAN, Place};

/// The folder of work in progress: beside a dataset, or inside it on an object store.
const SUFFIX: &str = ".chunkyard";
/// The entries of that folder where it is beside a dataset.
const DATA: &str = "data";
const JOURNAL: &str = "journal";
const ATTEMPTS: &str = "attempts";

/// Refuses names of nodes that a file system does not take, before anything is written.
pub(crate) fn refuse_long_names<'a>(
    place: &Place,
    paths: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    let Some(most) = place.directory().name_bytes_max() else { return Ok(()) };
    for path in paths {
        let long = path.split('/').map(str::len).max().filter(|bytes| *bytes > most);
        if let Some(bytes) = long {
            return Err(Error::invalid(format!(
                "{path} cannot be written to {}: the name has {bytes} bytes, and a file system takes \
                 {most}; rename it first, or write to a repository",
                place.url()
            )));
        }
    }
    Ok(())
}

/// The files by which a format knows its datasets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    /// What messages call such a dataset.
    pub(crate) format: &'static str,
    /// A directory with one of these is such a dataset, and may be replaced by another one.
    pub(crate) known: &'static [&'static str],
    /// A dataset with one of these is complete: they are written last.
    pub(crate) complete: &'static [&'static str],
    /// Where a dataset is one file: its first bytes.
    pub(crate) file: Option<&'static [u8]>,
}

impl Marks {
    /// Whether one of these files is in a directory.
    async fn any(store: &Store, folder: &str, names: &[&str]) -> Result<bool> {
        for name in names {
            match store.head(&format!("{folder}{name}")).await {
                Ok(_) => return Ok(true),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// A dataset in the making, as seen by workers that only write packs.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The future root of the dataset.
    pub(crate) data: Store,
    /// Where the journal is kept.
    pub(crate) journal: Store,
    /// Where packs are written until they are taken over; `None` where they are written in place.
    pub(crate) attempts: Option<Store>,
}

/// A dataset in the making.
#[derive(Debug)]
pub(crate) struct Staging {
    /// The future root of the dataset.
    pub(crate) data: Store,
    /// Where the journal is kept.
    pub(crate) journal: Store,
    publish: Publish,
}

#[derive(Debug)]
enum Publish {
    /// By renaming `folder/data` to `name`.
    Rename { parent: Store, folder: String, name: String, replace: bool, marks: Marks, lock: Lock },
    /// It is in its place already.
    InPlace { root: Store },
}

impl Staging {
    /// Prepares a place for a new dataset. Refuses an occupied place, unless it holds a dataset of the same
    /// format that may be replaced.
    pub(crate) async fn begin(
        place: &Place,
        options: &CreateOptions,
        marks: Marks,
    ) -> Result<Self> {
        // Where nothing is renamed, what is complete and what is not must lie at the same place.
        match place.directory().kind() {
            Kind::Local => Self::aside(place, options, marks).await,
            Kind::Object { .. } => Self::in_place(place, options, marks).await,
            Kind::ReadOnly => {
                Err(Error::unsupported(format!("writing to {}, a web server", place.url())))
            }
        }
    }

    async fn aside(place: &Place, options: &CreateOptions, marks: Marks) -> Result<Self> {
        let Some((parent, name)) = place.object() else {
            return Err(exists(place.url()));
        };
        let folder = folder_of(name);
        let below = |inner: &str| parent.below(&format!("{folder}/{inner}"));
        let (data, journal) = (below(DATA)?, below(JOURNAL)?);
        // A second process waits here, and then finds the work of the first.
        let lock = parent.lock(&format!("{folder}/lock")).await?;
        let replace = match occupant(parent, name, marks).await? {
            Occupant::Nothing => false,
            Occupant::Same if options.overwrite => true,
            occupant => {
                // An unfinished conversion may lie there, to be resumed when told to replace. A finished one
                // leaves no journal.
                if !has_plan(&journal).await? {
                    clear_up(parent, &folder, lock).await;
                }
                let what = match occupant {
                    Occupant::Other => Noun::Foreign(marks.format),
                    _ => Noun::Occupant,
                };
                return Err(Error::AlreadyExists { what, name: place.url().to_owned() });
            }
        };
        let anew = options.plan.is_empty() || options.restart || !has_plan(&journal).await?;
        if anew {
            forget(parent, &folder).await?;
            parent.delete_dir(&format!("{folder}/{DATA}")).await?;
        } else {
            discard_halves(&data).await?;
        }
        let (parent, name) = (parent.clone(), name.to_owned());
        // Packs that workers of an earlier attempt wrote and the sink did not take over. Those workers may
        // still be writing.
        if anew || !options.keep_attempts {
            parent.delete_dir(&format!("{folder}/{ATTEMPTS}")).await.ok();
        }
        let publish = Publish::Rename { parent, folder, name, replace, marks, lock };
        Ok(Self { data, journal, publish })
    }

    /// The place of a dataset that another process prepared, for its members.
    pub(crate) fn shared(place: &Place) -> Result<Shared> {
        match (place.directory().renames(), place.object()) {
            (true, Some((parent, name))) => {
                let below = |inner: &str| parent.below(&format!("{}/{inner}", folder_of(name)));
                let attempts = Some(below(ATTEMPTS)?);
                Ok(Shared { data: below(DATA)?, journal: below(JOURNAL)?, attempts })
            }
            _ => {
                let data = place.directory().clone();
                Ok(Shared { journal: data.below(SUFFIX)?, data, attempts: None })
            }
        }
    }

    /// Puts objects that a worker wrote aside in their places.
    pub(super) async fn take_over(&self, attempt: &str, paths: &[String]) -> Result<()> {
        let Publish::Rename { parent, folder, .. } = &self.publish else {
            return Err(Error::invalid("the receipt of a pack: it was not written in its place"));
        };
        let work = parent.below(folder)?;
        for path in paths {
            let (from, to) = (format!("{ATTEMPTS}/{attempt}/{path}"), format!("{DATA}/{path}"));
            match work.rename(&from, &to).await {
                // A sink that died had taken it over already, and had not got as far as writing that down.
                Err(Error::NotFound { .. }) if work.head(&to).await.is_ok() => {}
                moved => moved?,
            }
        }
        // Only empty directories are left.
        work.delete_dir(&format!("{ATTEMPTS}/{attempt}")).await
    }

    async fn in_place(place: &Place, options: &CreateOptions, marks: Marks) -> Result<Self> {
        let data = place.directory().clone();
        let journal = data.below(SUFFIX)?;
        // Without a journal, the objects there are not ours.
        let unfinished = has_plan(&journal).await?;
        let found = data.list_dir("").await?;
        let complete = Marks::any(&data, "", marks.complete).await?;
        let occupied = !found.objects.is_empty() || !found.dirs.is_empty();
        if complete && unfinished {
            // The last attempt got as far as the commit, but did not clean up.
            data.delete_dir(SUFFIX).await?;
        }
        if complete || (occupied && !unfinished) {
            if options.overwrite {
                return Err(Error::unsupported(format!(
                    "replacing {}: an object store has no single step for it; delete it first, or \
                     write elsewhere",
                    place.url()
                )));
            }
            return Err(exists(place.url()));
        }
        if unfinished && (options.plan.is_empty() || options.restart) {
            // First forget the packs that are done, and last the plan, which says that this place is ours.
            forget_packs(&journal).await?;
            for dir in found.dirs.iter().filter(|dir| *dir != SUFFIX) {
                data.delete_dir(dir).await?;
            }
            data.delete_dir(SUFFIX).await?;
        }
        Ok(Self { publish: Publish::InPlace { root: data.clone() }, data, journal })
    }

    /// Makes the dataset, all of which is durable, visible under its name.
    pub(crate) async fn publish(self) -> Result<()> {
        match self.publish {
            Publish::Rename { parent, folder, name, replace, marks, lock } => {
                let data = format!("{folder}/{DATA}");
                // After the next step something else, or nothing, is under the name of the data: no attempt
                // may find a journal that says it is all there.
                forget(&parent, &folder).await?;
                if replace {
                    parent.exchange(&data, &name).await?;
                } else {
                    // Refuses if something appeared meanwhile: only an empty directory goes.
                    if !matches!(occupant(&parent, &name, marks).await?, Occupant::Nothing) {
                        return Err(exists(&format!("{}/{name}", parent.url())));
                    }
                    parent.rename(&data, &name).await?;
                }
                // A move is durable when both directories are.
                parent.sync_dir(&folder).await?;
                parent.sync_dir("").await?;
                clear_up(&parent, &folder, lock).await;
            }
            Publish::InPlace { root } => {
                root.delete_dir(SUFFIX).await.ok();
            }
        }
        Ok(())
    }
}

impl Staging {
    /// Makes one file of the data, which is durable, the dataset.
    pub(crate) async fn publish_file(self, file: &str) -> Result<()> {
        let Publish::Rename { parent, folder, name, replace, marks, lock } = self.publish else {
            return Err(Error::unsupported(format!("naming {file} where nothing is renamed")));
        };
        if !replace && !matches!(occupant(&parent, &name, marks).await?, Occupant::Nothing) {
            return Err(exists(&format!("{}/{name}", parent.url())));
        }
        // After this there is no such file aside: no attempt may find a journal that says it is all there.
        forget(&parent, &folder).await?;
        parent.rename(&format!("{folder}/{DATA}/{file}"), &name).await?;
        parent.sync_dir("").await?;
        clear_up(&parent, &folder, lock).await;
        Ok(())
    }
}

/// Deletes the folder of work once its dataset stands. What stays is rubbish, or belongs to a process that
/// waited for the lock and makes the folder anew.
async fn clear_up(parent: &Store, folder: &str, lock: Lock) {
    parent.delete_dir(folder).await.ok();
    drop(lock);
}

/// The folder of work in progress beside the dataset of a name.
fn folder_of(name: &str) -> String {
    format!(".{name}{SUFFIX}")
}

/// Deletes the journal, for good.
async fn forget(parent: &Store, folder: &str) -> Result<()> {
    parent.delete_dir(&format!("{folder}/{JOURNAL}")).await?;
    parent.sync_dir(folder).await
}

/// Deletes all of a journal but the plan.
async fn forget_packs(journal: &Store) -> Result<()> {
    let listed = journal.list_dir("").await?.objects.into_iter().map(|meta| meta.path);
    journal.delete(&listed.filter(|path| path != JOURNAL_PLAN).collect::<Vec<_>>()).await
}

/// What is at the place of a new dataset.
enum Occupant {
    /// Nothing, or an empty directory.
    Nothing,
    /// A dataset of the same format.
    Same,
    Other,
}

async fn occupant(parent: &Store, name: &str, marks: Marks) -> Result<Occupant> {
    match parent.head(name).await {
        Ok(meta) => {
            let magic = marks.file.filter(|magic| magic.len() as u64 <= meta.size);
            let Some(magic) = magic else { return Ok(Occupant::Other) };
            let same = parent.get_range(name, 0..magic.len() as u64).await? == magic;
            return Ok(if same { Occupant::Same } else { Occupant::Other });
        }
        Err(Error::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let found = parent.list_dir(name).await?;
    if found.objects.is_empty() && found.dirs.is_empty() {
        return Ok(Occupant::Nothing);
    }
    let same = Marks::any(parent, &format!("{name}/"), marks.known).await?;
    Ok(if same { Occupant::Same } else { Occupant::Other })
}

fn exists(url: &str) -> Error {
    Error::AlreadyExists { what: Noun::Occupant, name: url.to_owned() }
}

/// Deletes files that a killed attempt left half written. It knows them by their names.
async fn discard_halves(data: &Store) -> Result<()> {
    let objects = data.list("").await?;
    let halves: Vec<String> = objects
        .try_filter_map(|meta| async move {
            let name = meta.path.rsplit('/').next().unwrap_or_default();
            Ok(name.starts_with(TEMP_PREFIX).then(|| meta.path.clone()))
        })
        .try_collect()
        .await?;
    data.delete(&halves).await
}
