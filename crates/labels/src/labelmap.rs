//! A labelmap of a session: its arrays and tables, opened.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chunkyard_repo::{Array, NodeKind, Session, Table};
use chunkyard_store::{Error, Noun, Result};
use futures::TryStreamExt;

use crate::edit::Done;
use crate::layout::{self, Layout, array_name};
use crate::rows::u64s;
use crate::{Mapping, MappingBuilder};

/// A labelmap as a session sees it. A writable session can edit it, and [`Labelmap::commit`] makes the edits
/// visible; it refuses a session in which the store failed in the middle of an edit.
#[derive(Debug)]
pub struct Labelmap {
    pub(crate) session: Arc<Session>,
    pub(crate) path: String,
    pub(crate) layout: Layout,
    pub(crate) scales: Vec<Array>,
    pub(crate) mapping: Table,
    pub(crate) index: Table,
    pub(crate) bodies: Table,
    pub(crate) supervoxels: Table,
    pub(crate) mutations: Table,
    pub(crate) history: Table,
    /// The last id that was handed out here.
    pub(crate) last_id: AtomicU64,
    /// Whether an edit failed half-way: the session has some of its rows, and must not be committed.
    pub(crate) torn: AtomicBool,
    /// The edits that were made here, to be done anew if another writer is faster; `None` if the session had changes
    /// before, or got others.
    pub(crate) done: Mutex<Option<Vec<Done>>>,
    /// Whether the edits were done anew and committed in another session.
    pub(crate) spent: AtomicBool,
}

impl Labelmap {
    /// Creates an empty labelmap in a group that does not exist, with its arrays and tables.
    pub async fn create(session: &Arc<Session>, path: &str, layout: Layout) -> Result<Self> {
        layout.check()?;
        let node = session.create_group(path, layout.attributes()?)?;
        let path = node.path.clone();
        for scale in 0..layout.scales {
            let spec = layout.array(scale)?;
            session.create_array(&below(&path, &array_name(scale)), spec).await?;
        }
        for name in layout::TABLES {
            session.create_table(&below(&path, name), layout::table(name)?).await?;
        }
        Self::open(session, &path).await
    }

    /// Opens the labelmap in a group.
    pub async fn open(session: &Arc<Session>, path: &str) -> Result<Self> {
        let node = session.node(path)?;
        let attributes = session.attributes(path).await?;
        let layout = Layout::parse(&node.path, &attributes)?.ok_or_else(|| Error::NotFound {
            what: Noun::Labelmap,
            name: format!("{} (there is {} of another kind)", node.path, node.type_name()),
        })?;
        let path = node.path.clone();
        let mut scales = Vec::with_capacity(layout.scales);
        for scale in 0..layout.scales {
            scales.push(session.array(&below(&path, &array_name(scale))).await?);
        }
        let table = async |name: &str| session.table(&below(&path, name)).await;
        Ok(Self {
            mapping: table(layout::MAPPING).await?,
            index: table(layout::INDEX).await?,
            bodies: table(layout::BODIES).await?,
            supervoxels: table(layout::SUPERVOXELS).await?,
            mutations: table(layout::MUTATIONS).await?,
            history: table(layout::HISTORY).await?,
            session: session.clone(),
            path,
            layout,
            scales,
            last_id: AtomicU64::new(0),
            torn: AtomicBool::new(false),
            done: Mutex::new((!session.is_changed()).then(Vec::new)),
            spent: AtomicBool::new(false),
        })
    }

    /// The groups of a session that are labelmaps.
    pub async fn list(session: &Arc<Session>) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for node in session.tree().nodes() {
            if matches!(node.kind, NodeKind::Group { .. })
                && session.attributes(&node.path).await?.contains_key(layout::ATTRIBUTE)
            {
                found.push(node.path.clone());
            }
        }
        Ok(found)
    }

    /// The group.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Shape, blocks and scales.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The array of supervoxels of a scale.
    pub fn array(&self, scale: usize) -> Result<&Array> {
        self.scales.get(scale).ok_or_else(|| Error::NotFound {
            what: Noun::Array,
            name: format!("scale {scale} of {}, which has {}", self.path, self.scales.len()),
        })
    }

    /// A table of the labelmap, for reading: one of [`TABLES`](crate::TABLES).
    pub fn table(&self, name: &str) -> Result<&Table> {
        Ok(match name {
            layout::MAPPING => &self.mapping,
            layout::INDEX => &self.index,
            layout::BODIES => &self.bodies,
            layout::SUPERVOXELS => &self.supervoxels,
            layout::MUTATIONS => &self.mutations,
            layout::HISTORY => &self.history,
            _ => {
                let name =
                    format!("{name} of {}; there are {}", self.path, layout::TABLES.join(", "));
                return Err(Error::NotFound { what: Noun::Table, name });
            }
        })
    }

    /// The whole mapping in memory, at most 20 bytes for each row.
    pub async fn load_mapping(&self) -> Result<Mapping> {
        let rows = usize::try_from(self.mapping.stats()?.rows_max).unwrap_or(0);
        // The number is a promise of a file; the columns grow if it is true.
        let mut builder = MappingBuilder::with_capacity(rows.min(1 << 20));
        let mut batches = self.mapping.scan(&chunkyard_repo::KeyRange::All, None)?;
        while let Some(batch) = batches.try_next().await? {
            builder.extend(u64s(&batch, "supervoxel")?, u64s(&batch, "body")?);
        }
        builder.finish()
    }

    pub(crate) fn refuse_torn(&self) -> Result<()> {
        if self.torn.load(Ordering::Relaxed) {
            let what = "an edit of this session failed half-way; open a new session and edit again";
            return Err(Error::invalid(what));
        }
        if self.spent.load(Ordering::Relaxed) {
            let what = "the edits of this session are committed; open a new session to make more";
            return Err(Error::invalid(what));
        }
        Ok(())
    }

    /// From now on the session has more than edits.
    pub(crate) fn forget_edits(&self) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The path of a child of a group.
pub(crate) fn below(group: &str, name: &str) -> String {
    format!("{}/{name}", group.trim_end_matches('/'))
}
