//! Level 0: the state file, and the claims around it.

use std::sync::Arc;

use chunkyard_store::{Error, Result};
use futures::TryStreamExt;

use super::Report;
use super::users::Affected;
use crate::Repository;
use crate::state::{STATE_FILE, State};
use crate::swap::{CLAIMS, claim_generation, parse_state};

impl Repository {
    /// Checks state and claims; `None` when there is no state to continue with.
    pub(super) async fn verify_state(&self, report: &mut Report) -> Result<Option<Arc<State>>> {
        let none = Affected::NONE;
        let backend = self.inner.state_file.store().backend();
        let published = match backend.get(STATE_FILE).await {
            Ok(object) => report.take(STATE_FILE, none, parse_state(&object.bytes, STATE_FILE))?,
            // Allowed between a claim and its publication; the latest state is found below.
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut claims: Vec<_> = match backend.list(CLAIMS).await {
            Ok(listed) => listed.try_collect().await?,
            // A store that cannot list (plain HTTP) has no claims either.
            Err(Error::Unsupported { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        claims.sort_by(|a, b| a.path.cmp(&b.path));
        let mut above = published.as_ref().map_or(0, |state| state.generation + 1);
        for claim in claims {
            let Some(generation) = claim_generation(&claim.path) else {
                report.error(&claim.path, "not the name of a claim".into(), none);
                continue;
            };
            if claim.size == 0 {
                continue; // retired; its number stays taken
            }
            let bytes = match backend.get(&claim.path).await {
                Ok(object) => object.bytes,
                Err(Error::NotFound { .. }) => continue, // retired meanwhile
                Err(error) => return Err(error),
            };
            let state = report.take(&claim.path, none, parse_state(&bytes, &claim.path))?;
            report.checked.files += 1;
            let Some(state) = state else { continue };
            if state.generation != generation {
                let what = format!("holds generation {}", state.generation);
                report.error(&claim.path, what, none);
            }
            if generation >= above {
                if generation > above {
                    let what =
                        format!("claims {above} to {} are missing before it", generation - 1);
                    report.error(&claim.path, what, none);
                }
                above = generation + 1;
            }
        }
        report.checked.files += 1;
        let state = report.take(STATE_FILE, none, self.state().await)?;
        if let Some(state) = &state
            && let Ok(protocol) = self.inner.state_file.protocol()
            && state.swap.is_some_and(|swap| swap != protocol)
        {
            let what = format!("guarded by {:?}, opened with {protocol:?}", state.swap);
            report.error(STATE_FILE, what, none);
        }
        Ok(state)
    }
}
