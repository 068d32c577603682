//! Swapping where a store can only create exclusively: a claim file per generation.
//!
//! rename(2) replaces unconditionally, so «read, compare, rename» loses updates. Instead the writer
//! of generation N+1 creates `g/<N+1>.json`; the kernel lets exactly one of several succeed, and
//! that is the commit point. Publishing `state.json` only saves readers a step: they start from it
//! and follow the claims above. `docs/formats/repo.md` §2.5 has the crash cases.

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_store::atomic::{Content, Outcome, SameBytes, Sight, Step, Witness};
use chunkyard_store::publish::sync_folders;
use chunkyard_store::{Error, Noun, Result, Store, Version};
use futures::TryStreamExt;

use super::{Attempt, Loaded, Memory, StateFile, Swap, checksum, overtaken, unknown_outcome};
use crate::id;
use crate::state::{RECENT, STATE_FILE, State, SwapProtocol};

/// Directory of the claims.
pub(crate) const CLAIMS: &str = "g";
/// Directory of files that no reader looks at.
pub(crate) const TEMPORARY: &str = ".tmp";
const LOCK: &str = "state.lock";
/// Old claims are cleaned up once per this many generations.
const CLEAN_EVERY: u64 = 16;

fn claim_path(generation: u64) -> String {
    format!("{CLAIMS}/{generation:020}.json")
}

/// The generation in a claim's path.
pub(crate) fn claim_generation(path: &str) -> Option<u64> {
    let digits = path.strip_prefix("g/")?.strip_suffix(".json")?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

fn parse_claim(memory: &Memory, bytes: &Bytes, generation: u64) -> Result<Loaded> {
    let path = claim_path(generation);
    let state = memory.parse(bytes, &path)?;
    if state.generation != generation {
        return Err(Error::Corrupt {
            file: path,
            what: "generation".into(),
            expected: generation.to_string(),
            found: state.generation.to_string(),
        });
    }
    Ok(Loaded { state, version: None, bytes: bytes.clone() })
}

async fn read_published(file: &StateFile) -> Result<Option<Loaded>> {
    match file.store.backend().get(STATE_FILE).await {
        Ok(object) => {
            let state = file.memory.parse(&object.bytes, STATE_FILE)?;
            Ok(Some(Loaded { state, version: None, bytes: object.bytes }))
        }
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn nothing(store: &Store) -> Error {
    Error::NotFound { what: Noun::Repository, name: store.url().to_owned() }
}

/// The reading rule: the published state, then the claims above it.
pub(super) async fn read_local(file: &StateFile) -> Result<Loaded> {
    let mut restarted_at = None;
    'again: loop {
        let published = read_published(file).await?;
        let mut latest = published.clone();
        let mut next = published.as_ref().map_or(0, |loaded| loaded.state.generation + 1);
        loop {
            match file.store.backend().get(&claim_path(next)).await {
                // Emptied since: the published state has moved far on. If it has not, the claim
                // is damaged.
                Ok(object) if object.bytes.is_empty() => {
                    let at = published.as_ref().map(|loaded| loaded.state.generation);
                    if restarted_at.replace(at) == Some(at) {
                        return Err(Error::Corrupt {
                            file: claim_path(next),
                            what: "a claim above the published state".into(),
                            expected: "a state".into(),
                            found: "an empty file".into(),
                        });
                    }
                    continue 'again;
                }
                Ok(object) => latest = Some(parse_claim(&file.memory, &object.bytes, next)?),
                Err(Error::NotFound { .. }) => break,
                Err(error) => return Err(error),
            }
            next += 1;
        }
        let (Some(latest), Some(published)) = (&latest, &published) else {
            return latest.ok_or_else(|| nothing(&file.store));
        };
        if latest.state.generation == published.state.generation {
            return Ok(latest.clone());
        }
        // A claim may be void (see `swap`); void ones lie far below the published state.
        let now = read_published(file).await?;
        if now.is_none_or(|now| now.state.generation <= latest.state.generation) {
            return Ok(latest.clone());
        }
    }
}

/// Finds the highest claim by listing: for stores where the published copy is only a hint, and for
/// writers on a filesystem whose locks may do nothing.
pub(super) async fn read_listed(file: &StateFile) -> Result<Loaded> {
    loop {
        let published = if file.is_local() {
            match read_local(file).await {
                Ok(loaded) => Some(loaded),
                Err(Error::NotFound { .. }) => None,
                Err(error) => return Err(error),
            }
        } else {
            read_published(file).await?
        };
        let listed: Vec<_> = file.store.backend().list(CLAIMS).await?.try_collect().await?;
        let highest = listed
            .iter()
            .filter(|meta| meta.size > 0)
            .filter_map(|meta| claim_generation(&meta.path))
            .max();
        match (published, highest) {
            (Some(loaded), Some(claim)) if claim <= loaded.state.generation => return Ok(loaded),
            (Some(loaded), None) => return Ok(loaded),
            (None, None) => return Err(nothing(&file.store)),
            (_, Some(claim)) => match file.store.backend().get(&claim_path(claim)).await {
                Ok(object) if object.bytes.is_empty() => {}
                Ok(object) => return parse_claim(&file.memory, &object.bytes, claim),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            },
        }
    }
}

/// Claims the generation of `ours`; `current` is `None` for the very first.
pub(super) async fn swap(
    file: &StateFile,
    current: Option<&Loaded>,
    ours: Attempt<'_>,
) -> Result<Swap> {
    if file.is_local() {
        swap_local(file, current, ours).await
    } else {
        swap_listed(file, ours).await
    }
}

async fn swap_local(file: &StateFile, current: Option<&Loaded>, ours: Attempt<'_>) -> Result<Swap> {
    let backend = file.store.backend();
    let temporary = format!("{TEMPORARY}/{}", ours.next.write_id);
    let claim = claim_path(ours.next.generation);
    backend.put(&temporary, vec![ours.bytes.clone()]).await?;
    let mut durable = ours.files.to_vec();
    durable.push(temporary.clone());
    backend.sync(&durable).await?;
    // A network file system may have linked and lost the reply: the existing claim decides.
    let step = Step::new(&file.store, &claim, Claim { file, next: ours.next });
    match step.publish(&temporary).await? {
        Outcome::Done(()) => {}
        Outcome::Lost => {
            backend.delete(&[temporary]).await?;
            return Ok(Swap::Lost);
        }
        Outcome::Unknown(error) => return Err(undecided(ours.next, error)),
    }
    // The number is ours, and other writers can build on it.
    file.end_turn();
    // The commit point. If it fails, other writers may have seen the claim already, and build on
    // it.
    backend.sync_dir(CLAIMS).await.map_err(|error| unknown_outcome(ours.next, error))?;
    publish(file, current, ours, &temporary).await
}

/// Damage is not a matter of the outcome, and the claims can be repaired.
fn undecided(ours: &State, error: Error) -> Error {
    match error {
        error @ Error::Corrupt { .. } => error,
        other => unknown_outcome(ours, other),
    }
}

/// Knows which writer made a generation: by its claim or, once that is cleaned up, by the latest state.
struct Claim<'a> {
    file: &'a StateFile,
    next: &'a State,
}

#[async_trait]
impl Witness for Claim<'_> {
    type Proof = ();

    async fn look(&self) -> Result<Sight<()>> {
        let Self { file, next } = *self;
        let of = |ours| if ours { Sight::Ours(()) } else { Sight::Another };
        match file.store.backend().get(&claim_path(next.generation)).await {
            Ok(object) if !object.bytes.is_empty() => {
                let claim = parse_claim(&file.memory, &object.bytes, next.generation)?;
                return Ok(of(claim.state.write_id == next.write_id));
            }
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let latest = match file.read().await {
            Ok(latest) => latest.state,
            Err(Error::NotFound { .. }) => return Ok(Sight::Before),
            Err(error) => return Err(error),
        };
        if latest.generation < next.generation {
            return Ok(Sight::Before);
        }
        file.landed(&latest, next).await?.map(of).ok_or_else(overtaken)
    }

    fn acknowledged(&self, _: Version) {}
}

/// Confirms the claim, then publishes it.
///
/// A claim is *void* when its number had been claimed, published and cleaned up before; only a
/// writer that slept through many generations can make one, and the published state is then far
/// above. If the published copy still is the one we built on, our claim cannot be void. Otherwise
/// the latest state decides, which knows the write id of every generation. The tempting shortcut
/// «the published generation is at least ours, so we lost» is wrong: another writer may have read
/// our claim, built on it and published first. So is «our snapshot is not listed, so we lost»:
/// expiry unlists snapshots, too.
async fn publish(
    file: &StateFile,
    current: Option<&Loaded>,
    ours: Attempt<'_>,
    temporary: &str,
) -> Result<Swap> {
    let backend = file.store.backend();
    let generation = ours.next.generation;
    let undecided = |error| unknown_outcome(ours.next, error);
    let lock = backend.lock(LOCK).await.map_err(undecided)?;
    let published = match backend.get(STATE_FILE).await {
        Ok(object) => Some(object.bytes),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(undecided(error)),
    };
    let mut behind = true;
    if published.as_ref() != current.map(|current| &current.bytes) {
        let latest = read_local(file).await.map_err(undecided)?;
        let landed = file.landed(&latest.state, ours.next).await;
        match landed.map_err(undecided)? {
            Some(true) => {}
            // Within the remembered generations our id must be there.
            Some(false) if latest.state.generation < generation + RECENT as u64 => {
                return Err(Error::Corrupt {
                    file: claim_path(generation),
                    what: "recent-write-ids of a later state".into(),
                    expected: ours.next.write_id.clone(),
                    found: "none".into(),
                });
            }
            Some(false) => {
                backend.delete(&[claim_path(generation), temporary.to_owned()]).await?;
                return Ok(Swap::Lost);
            }
            None => return Err(undecided(overtaken())),
        }
        if let Some(bytes) = &published {
            let published = checksum::open(bytes, STATE_FILE).map_err(undecided)?;
            behind = published.generation < generation;
        }
    }
    // From here on the commit stands. If publishing fails, or a power cut undoes it, readers find
    // the claim by probing and the next writer publishes.
    let published = tolerate(publish_copy(&file.store, &ours.bytes, temporary, behind).await)?;
    drop(lock);
    // Claims are needed until the published copy is durably beyond them.
    if published && generation.is_multiple_of(CLEAN_EVERY) && tolerate(backend.sync_dir("").await)?
    {
        tolerate(clean_up(&file.store, generation).await)?;
    }
    Ok(won(ours))
}

/// A store failure after the commit point does not undo the commit; nor does a collection that
/// deletes a temporary file. Returns whether it worked.
fn tolerate(result: Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::Store { .. } | Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn won(ours: Attempt<'_>) -> Swap {
    Swap::Won(Loaded { state: ours.next.clone().into(), version: None, bytes: ours.bytes })
}

async fn publish_copy(store: &Store, bytes: &Bytes, temporary: &str, behind: bool) -> Result<()> {
    let backend = store.backend();
    if !behind {
        return backend.delete(&[temporary.to_owned()]).await;
    }
    match backend.rename(temporary, STATE_FILE).await {
        // Where claiming is a rename too, the temporary file is gone: write it again.
        Err(Error::NotFound { .. }) => {
            backend.put(temporary, vec![bytes.clone()]).await?;
            backend.sync(&[temporary.to_owned()]).await?;
            backend.rename(temporary, STATE_FILE).await
        }
        renamed => renamed,
    }
}

/// Publishes the highest readable claim, whatever the state of the published copy. Damaged claims
/// above it (the published copy shares its inode with its claim, so both may be hit at once) are
/// set aside, or no reader would get past them. Returns the generation and how many were set aside.
pub(super) async fn republish(store: &Store) -> Result<(u64, u64)> {
    let backend = store.backend();
    let listed: Vec<_> = backend.list(CLAIMS).await?.try_collect().await?;
    let mut claims: Vec<u64> = listed
        .iter()
        .filter(|meta| meta.size > 0)
        .filter_map(|meta| claim_generation(&meta.path))
        .collect();
    claims.sort_unstable();
    let mut damaged = Vec::new();
    for generation in claims.into_iter().rev() {
        let path = claim_path(generation);
        let bytes = backend.get(&path).await?.bytes;
        if parse_claim(&Memory::default(), &bytes, generation).is_err() {
            damaged.push((path, bytes));
            continue;
        }
        let set_aside = damaged.len() as u64;
        for (path, bytes) in damaged {
            let name = path.replace('/', "-");
            backend.put(&format!("{TEMPORARY}/damaged-{name}"), vec![bytes]).await?;
            backend.delete(&[path]).await?;
        }
        overwrite(store, bytes).await?;
        return Ok((generation, set_aside));
    }
    Err(Error::NotFound { what: Noun::SoundClaim, name: store.url().to_owned() })
}

/// Claims the generation of a rebuilt state and publishes it over any existing copy.
pub(super) async fn put_rebuilt(store: &Store, state: &State, bytes: Bytes) -> Result<()> {
    let claim = claim_path(state.generation);
    let temporary = format!("{TEMPORARY}/{}", state.write_id);
    let witness = SameBytes { store, path: &claim, expected: None, bytes: &bytes };
    let content = Content::Parts(vec![bytes.clone()]);
    let created = Step::new(store, &claim, witness).create(content, &temporary).await?;
    match created.known(|| format!("claiming generation {}", state.generation))? {
        Some(_) => overwrite(store, bytes).await,
        None => Err(Error::AlreadyExists { what: Noun::Claim, name: claim }),
    }
}

/// Replaces the published copy without looking at it.
async fn overwrite(store: &Store, bytes: Bytes) -> Result<()> {
    let backend = store.backend();
    if !store.renames() {
        return backend.put(STATE_FILE, vec![bytes]).await;
    }
    let lock = backend.lock(LOCK).await?;
    let temporary = format!("{TEMPORARY}/{}", id::fresh()?);
    backend.put(&temporary, vec![bytes]).await?;
    backend.sync(std::slice::from_ref(&temporary)).await?;
    backend.rename(&temporary, STATE_FILE).await?;
    backend.sync_dir("").await?;
    drop(lock);
    Ok(())
}

impl StateFile {
    /// Cleans up claims between the generations that do so: without further writers, only
    /// collection does it.
    pub(crate) async fn clean_up_claims(&self) -> Result<()> {
        if self.protocol()? != SwapProtocol::GenerationClaim {
            return Ok(());
        }
        // The published copy counts: claims above it are the state.
        let Some(published) = read_published(self).await? else { return Ok(()) };
        let generation = published.state.generation;
        // Its writer may have died before the copy was durable, and a power cut must not bring back a
        // copy that needs the claims deleted now.
        sync_folders(&self.store, &[STATE_FILE.to_owned()]).await?;
        clean_up(&self.store, generation).await
    }
}

/// Deletes claims far behind the published generation. A writer that slept since then may claim such
/// a number again; the latest state tells it that the claim is void.
async fn clean_up(store: &Store, published: u64) -> Result<()> {
    let listed: Vec<_> = store.backend().list(CLAIMS).await?.try_collect().await?;
    let settled = |path: &str| {
        claim_generation(path).is_some_and(|claim| claim.saturating_add(RECENT as u64) <= published)
    };
    let stale = listed.into_iter().map(|meta| meta.path).filter(|path| settled(path));
    store.backend().delete(&stale.collect::<Vec<_>>()).await
}

/// On an object store without conditional puts: the claim is created, `state.json` is a hint.
async fn swap_listed(file: &StateFile, ours: Attempt<'_>) -> Result<Swap> {
    let backend = file.store.backend();
    backend.sync(ours.files).await?;
    let next = ours.next;
    if next.generation == 0 && read_published(file).await?.is_some() {
        return Ok(Swap::Lost);
    }
    let claim = claim_path(next.generation);
    let step = Step::new(&file.store, &claim, Claim { file, next });
    match step.create(Content::Parts(vec![ours.bytes.clone()]), "").await? {
        Outcome::Done(()) => {}
        Outcome::Lost => return Ok(Swap::Lost),
        Outcome::Unknown(error) => return Err(undecided(next, error)),
    }
    let latest = read_listed(file).await.map_err(|error| unknown_outcome(next, error))?;
    let landed = file.landed(&latest.state, next).await;
    match landed.map_err(|error| unknown_outcome(next, error))? {
        Some(true) => {}
        Some(false) => {
            backend.delete(&[claim_path(next.generation)]).await?;
            return Ok(Swap::Lost);
        }
        None => return Err(unknown_outcome(next, overtaken())),
    }
    // Only a hint: a failure or a race here only makes readers look at the claims.
    tolerate(backend.put(STATE_FILE, vec![ours.bytes.clone()]).await)?;
    if next.generation.is_multiple_of(CLEAN_EVERY) {
        tolerate(clean_up(&file.store, next.generation).await)?;
    }
    Ok(won(ours))
}
