//! Writes the golden files: `make-container-files DIRECTORY`.

mod everything;
mod layers;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(&directory)?);
    std::fs::write(Path::new(&directory).join("af9-everything.af"), everything::file()?)?;
    layers::af9(store.clone(), "af9-layers.af").await?;
    layers::af11(store.clone(), "af11-layers.af").await?;
    layers::af12(store.clone(), "af12-layers.af").await?;
    layers::af14(store.clone(), "af14-layers.af").await?;
    layers::af15(store, "af15-everything.af").await
}
