//! Mutations: each one is a commit on a branch, with the id that the log of the labelmap has for it.
//!
//! A client of DVID does not say which state of the labelmap its edit was made for: an edit means the labelmap as it is
//! when its turn comes. So edits of one branch wait for each other here, and if a writer elsewhere was faster, the
//! edit is worked out anew on what that one left. It is refused if it makes no sense there.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::response::Response;
use chunkyard_engine::labels::{Author, Edit, Mutation, Runs, commit_edits};
use chunkyard_engine::{Error, Result};
use prost::Message;

use super::address::{Address, Holder, resolve};
use super::answer::json;
use super::ask::{self, LIST_BYTES_MAX, Settings, bad, label};
use super::segmentation::Segmentation;
use super::wire::MappingOps;
use crate::State;
use crate::http::Failure;

/// How often an edit is made anew because another writer was faster.
const ATTEMPTS: usize = 10;

/// `POST merge`: the body that stays, and those that go into it.
pub(super) async fn post_merge(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let bodies: Vec<u64> = ask::json(body).await?;
    let (Some((&target, merged)), true) = (bodies.split_first(), bodies.len() > 1) else {
        return Err(bad("a merge is a list [TARGET, BODY, …] of two bodies or more"));
    };
    let edit = Edit::Merge { target, bodies: merged.to_vec() };
    let message = format!("merge {} bodies into {target}", merged.len());
    let done = apply(&state, &uuid, &data, &settings, vec![edit], &message).await?;
    Ok(json(format!("{{\"MutationID\": {}}}", done.mutation)))
}

/// `POST cleave/LABEL`: the supervoxels that leave.
pub(super) async fn post_cleave(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    given: Body,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let body = label(&body)?;
    let supervoxels: Vec<u64> = ask::json(given).await?;
    let message = format!("cleave {} supervoxels from {body}", supervoxels.len());
    let edit = Edit::Cleave { body, supervoxels, new_body: None };
    let done = apply(&state, &uuid, &data, &settings, vec![edit], &message).await?;
    let Mutation { mutation, other, .. } = done;
    Ok(json(format!("{{\"CleavedLabel\": {other}, \"MutationID\": {mutation}}}")))
}

/// `POST split-supervoxel/SUPERVOXEL`: the voxels to cut out.
pub(super) async fn post_split_supervoxel(
    Shared(state): Shared<State>,
    Path((uuid, data, supervoxel)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let supervoxel = label(&supervoxel)?;
    let (part, rest) = (settings.number("split")?, settings.number("remain")?);
    let address = editable(&state, &uuid, &data).await?;
    let voxels = runs(&state, &address, body).await?;
    let edit = Edit::SplitSupervoxel { supervoxel, voxels, part, rest };
    let message = format!("split supervoxel {supervoxel}");
    let done = apply_at(&state, &address, &settings, vec![edit], &message).await?;
    let Mutation { mutation, other, supervoxels, .. } = done;
    let made = supervoxels.iter().find(|id| **id != supervoxel && **id != other);
    let rest = made.copied().or(rest).unwrap_or_default();
    Ok(json(format!(
        "{{\"SplitSupervoxel\": {other}, \"RemainSupervoxel\": {rest}, \"MutationID\": {mutation}}}"
    )))
}

/// `POST split/LABEL`: the voxels that become another body.
pub(super) async fn post_split(
    Shared(state): Shared<State>,
    Path((uuid, data, body)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    given: Body,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let body = label(&body)?;
    let address = editable(&state, &uuid, &data).await?;
    let voxels = runs(&state, &address, given).await?;
    let edit = Edit::SplitBody { body, voxels, new_body: None, halves: Vec::new() };
    let message = format!("split body {body}");
    let done = apply_at(&state, &address, &settings, vec![edit], &message).await?;
    let Mutation { mutation, other, .. } = done;
    Ok(json(format!("{{\"label\": {other}, \"MutationID\": {mutation}}}")))
}

/// `POST renumber`: pairs of new and old id, all in one commit.
pub(super) async fn post_renumber(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let pairs: Vec<u64> = ask::json(body).await?;
    let (pairs, []) = pairs.as_chunks::<2>() else {
        return Err(bad("renumbering takes a list [NEW, OLD, NEW, OLD, …]"));
    };
    let edit = |[new_body, body]: &[u64; 2]| Edit::Renumber { body: *body, new_body: *new_body };
    let edits: Vec<Edit> = pairs.iter().map(edit).collect();
    let message = format!("renumber {} bodies", edits.len());
    let address = editable(&state, &uuid, &data).await?;
    if !edits.is_empty() {
        apply_at(&state, &address, &settings, edits, &message).await?;
    }
    Ok(json(String::new()))
}

/// `POST mappings`: supervoxels and the bodies that they get, all in one commit.
pub(super) async fn post_mappings(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let given = ask::body(body, LIST_BYTES_MAX).await?;
    let given = MappingOps::decode(given)
        .map_err(|error| bad(format!("the body is no protobuf message MappingOps: {error}")))?;
    let pairs = given.mappings.iter().flat_map(|op| op.original.iter().map(|id| (*id, op.mapped)));
    let mapping: Vec<(u64, u64)> = pairs.collect();
    let address = editable(&state, &uuid, &data).await?;
    if !mapping.is_empty() {
        let message = format!("map {} supervoxels", mapping.len());
        apply_at(&state, &address, &settings, vec![Edit::Map { mapping }], &message).await?;
    }
    Ok(json(String::new()))
}

/// The runs of a request, counted from the first voxel of the labelmap.
async fn runs(state: &State, address: &Address, body: Body) -> Result<Runs, Failure> {
    let given = ask::body(body, state.config().limits.body_bytes_max).await?;
    let seg = Segmentation::open(state, address).await?;
    let (first, _) = seg.frame().voxels;
    Ok(parse_runs(&given, first)?)
}

/// Reads DVID's form of a sparse volume, whose positions may be negative: `docs/formats/labels.md` counts from 0.
fn parse_runs(given: &[u8], first: [i64; 3]) -> Result<Runs> {
    let refused = |why: String| Error::invalid(format!("the sparse volume of the body: {why}"));
    if first == [0; 3] {
        return Runs::parse_dvid(given).map_err(|error| refused(error.to_string()));
    }
    let mut moved = given.get(..12).unwrap_or(given).to_vec();
    for run in given.get(12..).unwrap_or_default().chunks(16) {
        let Some(run) = run.first_chunk::<16>() else {
            moved.extend(run);
            continue;
        };
        let words = run.as_chunks::<4>().0;
        let [x, y, z, length] = std::array::from_fn(|at| i32::from_le_bytes(words[at]));
        for (position, first) in [(x, first[2]), (y, first[1]), (z, first[0])] {
            let own = i64::from(position) - first;
            let own = i32::try_from(own).ok().filter(|own| *own >= 0).ok_or_else(|| {
                refused(format!("{position} lies before the volume, which begins at {first}"))
            })?;
            moved.extend(own.to_le_bytes());
        }
        moved.extend(length.to_le_bytes());
    }
    Runs::parse_dvid(&moved).map_err(|error| refused(error.to_string()))
}

/// A labelmap that edits can go to.
async fn editable(state: &State, uuid: &str, data: &str) -> Result<Address, Failure> {
    let address = resolve(state, uuid, data).await?;
    match (&address.holder, &address.branch) {
        (Holder::Store { .. }, _) => Err(bad(format!(
            "{} is a store of DVID, which is only read; convert it into a repository to edit it",
            address.place
        ))),
        (Holder::Repository(_), None) => Err(bad(format!(
            "{uuid} is a version that never changes; edits go to a branch, by its name in place of the UUID"
        ))),
        (Holder::Repository(_), Some(_)) => Ok(address),
    }
}

async fn apply(
    state: &State,
    uuid: &str,
    data: &str,
    settings: &Settings<'_>,
    edits: Vec<Edit>,
    message: &str,
) -> Result<Mutation, Failure> {
    let address = editable(state, uuid, data).await?;
    apply_at(state, &address, settings, edits, message).await
}

/// Makes edits as one commit on the branch of an address, and says what the last of them logged.
async fn apply_at(
    state: &State,
    address: &Address,
    settings: &Settings<'_>,
    edits: Vec<Edit>,
    message: &str,
) -> Result<Mutation, Failure> {
    let (Holder::Repository(session), Some(branch)) = (&address.holder, &address.branch) else {
        return Err(bad("edits go to a branch of a repository"));
    };
    let text = |name: &str| settings.get(name).unwrap_or_default().to_owned();
    let author = Author { user: text("u"), note: text("app") };
    let queue = state.dvid().queue(&address.place, branch);
    let _turn = queue.acquire().await.map_err(|error| bad(error.to_string()))?;
    let repository = session.repository();
    let mut attempt = 1;
    loop {
        let made = commit_edits(repository, branch, &address.path, &edits, &author, message).await;
        match made {
            Ok((mutations, _)) => {
                let last = mutations.into_iter().next_back();
                return last.ok_or_else(|| bad("there was nothing to edit"));
            }
            Err(Error::Conflict { .. }) if attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}
