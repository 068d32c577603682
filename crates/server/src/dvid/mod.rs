//! Labelmaps by DVID's interface, for programs that know DVID: Neuroglancer's `dvid://`, and DVID's own clients.
//!
//! ```text
//!  request ─▶ ask      path, query, body            address ─▶ segmentation ─┬─ commit   labelmap of a repository
//!             answer   JSON, bytes, streams         which labelmap at        └─ store    DVID's own store
//!                                                   which version
//!  repos      repositories, versions                info · points · index   numbers
//!  blocks     streams of label blocks               volume · sparse         voxels
//!  edits      mutations: commits on a branch        wire                    DVID's protobuf messages
//! ```
//!
//! docs/server.md has all requests, and where the answers differ from those of DVID.

pub(crate) mod address;
mod answer;
mod ask;
mod blocks;
mod edits;
mod index;
mod info;
mod kept;
mod meant;
mod points;
mod repos;
pub(crate) mod segmentation;
mod served;
mod sparse;
mod volume;
mod wire;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{any, get, post};

pub(crate) use self::kept::Kept;
use crate::State;
use crate::http::Failure;

/// What DVID answers about a labelmap, and Chunkyard does not.
const OTHERS: [(&str, &str); 11] = [
    ("extents", "the extent follows from the voxels"),
    ("resolution", "the size of a voxel is set when a labelmap is made"),
    ("ingest-supervoxels", "voxels come in by `chunkyard labels import`"),
    ("isotropic", "only voxels as they are stored are sent"),
    ("pseudocolor", "labels are sent, not pictures"),
    ("nextlabel", "ids are chosen when an edit needs them"),
    ("set-nextlabel", "ids are chosen when an edit needs them"),
    ("supervoxel-splits", "`chunkyard labels blame` says what was cut from what"),
    ("mutations", "`chunkyard labels log` lists mutations"),
    ("index-version", "every edit is a version"),
    ("proximity", "compare the indices of both bodies"),
];

/// The routes.
pub(crate) fn routes() -> Router<State> {
    let router = Router::new()
        .route("/api/server/info", get(repos::get_server))
        .route("/api/server/types", get(repos::get_types))
        .route("/api/repos/info", get(repos::get_repos))
        .route("/api/repo/{uuid}/info", get(repos::get_repo))
        .route("/api/repo/{uuid}/branch-versions/{name}", get(repos::get_branch_versions))
        .route("/api/node/{uuid}/commit", get(repos::get_status))
        .route("/api/node/{uuid}/status", get(repos::get_status))
        .route("/api/node/{uuid}/note", get(repos::get_note));
    let of_data = Router::new()
        .route("/info", get(info::get_info))
        .route("/metadata", get(info::get_metadata))
        .route("/blocks", post(no_voxels))
        .route("/blocks/{size}/{offset}", get(blocks::get_blocks))
        .route("/specificblocks", get(blocks::get_specific_blocks))
        .route("/raw/{axes}/{size}/{offset}", get(volume::get_raw).post(no_voxels))
        .route("/label/{at}", get(points::get_label))
        .route("/labels", get(points::get_labels))
        .route("/mapping", get(points::get_mapping))
        .route("/mappings", get(points::get_mappings).post(edits::post_mappings))
        .route("/sizes", get(points::get_sizes))
        .route("/size/{label}", get(points::get_size))
        .route("/listlabels", get(points::get_list))
        .route("/existing-labels", get(points::get_existing))
        .route("/maxlabel", get(points::get_max))
        .route("/index/{label}", get(index::get_index).post(no_index))
        .route("/indices", get(index::get_indices).post(no_indices))
        .route("/indices-compressed", get(index::get_indices_compressed))
        .route("/lastmod/{label}", get(index::get_lastmod))
        .route("/supervoxels/{label}", get(index::get_supervoxels))
        .route("/supervoxel-sizes/{label}", get(index::get_supervoxel_sizes))
        .route("/sparsevol-size/{label}", get(index::get_sparse_size))
        .route("/sparsevol/{label}", get(sparse::get_sparse))
        .route("/sparsevol-coarse/{label}", get(sparse::get_coarse))
        .route("/merge", post(edits::post_merge))
        .route("/cleave/{label}", post(edits::post_cleave))
        .route("/split-supervoxel/{supervoxel}", post(edits::post_split_supervoxel))
        .route("/split/{label}", post(edits::post_split))
        .route("/renumber", post(edits::post_renumber));
    let of_data = OTHERS.iter().fold(of_data, |router, (name, why)| {
        let refuse = move || async move { unsupported(name, why) };
        router
            .route(&format!("/{name}"), any(refuse))
            .route(&format!("/{name}/{{*rest}}"), any(refuse))
    });
    router.nest("/api/node/{uuid}/{data}", of_data)
}

fn unsupported(name: &str, why: &str) -> Failure {
    Failure::new(StatusCode::NOT_IMPLEMENTED, format!("{name} is not answered: {why}"))
}

async fn no_voxels() -> Failure {
    unsupported("writing voxels", "they come in by `chunkyard labels import`")
}

async fn no_index(Path(_): Path<(String, String, String)>) -> Failure {
    no_indices().await
}

async fn no_indices() -> Failure {
    unsupported("writing an index", "it follows from the voxels and the mapping, in every commit")
}
