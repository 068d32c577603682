//! What errors are about, so that callers decide by it without comparing texts.

/// The noun of [`Error::NotFound`](super::Error::NotFound) and [`Error::AlreadyExists`](super::Error::AlreadyExists).
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Noun {
    /// An array.
    Array,
    /// An attribute.
    Attribute,
    /// A way to pack blocks of a container.
    BlockCodec,
    /// A Bloscpack file.
    BloscpackFile,
    /// A BLZ dataset.
    BlzDataset,
    /// A BLZ dataset that says how it is stored.
    BlzStorage,
    /// A body of a segmentation.
    Body,
    /// A branch.
    Branch,
    /// A bucket.
    Bucket,
    /// A chunk.
    Chunk,
    /// A claim of a generation.
    Claim,
    /// A column of a table.
    Column,
    /// A container.
    Container,
    /// A file beside a container that belongs to it.
    ContainerFile,
    /// Anything that a format recognises.
    Dataset,
    /// A tag that was deleted.
    DeletedTag,
    /// A directory.
    Directory,
    /// A file of the caller.
    File,
    /// Files that are not of this format, so they are never replaced.
    Foreign(&'static str),
    /// A group.
    Group,
    /// A directory of work that several processes share.
    Job,
    /// A segmentation under version control.
    Labelmap,
    /// A layer of a container.
    Layer,
    /// A file of a repository that is gone.
    Leftover,
    /// A meta file of a BLZ dataset.
    MetaFile,
    /// An edit of a segmentation.
    Mutation,
    /// A node of a hierarchy.
    Node,
    /// An object of a store.
    Object,
    /// Anything at the place of something new.
    Occupant,
    /// A pack of a conversion's plan.
    Pack,
    /// A state file that can be read.
    ReadableState,
    /// A branch that structure files name.
    RecordedBranch,
    /// A repository.
    Repository,
    /// A snapshot.
    Snapshot,
    /// A claim that can be read.
    SoundClaim,
    /// A structure file.
    StructureFile,
    /// A supervoxel of a segmentation.
    Supervoxel,
    /// A table of a repository.
    Table,
    /// A tag.
    Tag,
    /// A layer of a container that a crash cut short.
    TornLayer,
    /// A conversion that was not finished, of another source or with other options.
    UnfinishedConversion,
    /// A version, by whatever name.
    Version,
    /// A named place of virtual chunks.
    VirtualContainer,
    /// The array of chunks that a fork wrote.
    WrittenArray,
}

impl std::fmt::Display for Noun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Foreign(format) => {
                return write!(f, "something that is no {format}, and so is not replaced");
            }
            Self::Array => "array",
            Self::Attribute => "attribute",
            Self::BlockCodec => "packing of blocks",
            Self::BloscpackFile => "Bloscpack file",
            Self::BlzDataset => "BLZ dataset",
            Self::Body => "body",
            Self::BlzStorage => "BLZ dataset with a meta/storage",
            Self::Branch => "branch",
            Self::Bucket => "bucket",
            Self::Chunk => "chunk",
            Self::Claim => "claim",
            Self::Column => "column",
            Self::Container => "container",
            Self::ContainerFile => "file of a container",
            Self::Dataset => "dataset",
            Self::DeletedTag => "deleted tag (its name is not used again)",
            Self::Directory => "directory",
            Self::File => "file",
            Self::Job => "job",
            Self::Labelmap => "labelmap",
            Self::Group => "group",
            Self::Layer => "layer",
            Self::Leftover => "file of an older repository",
            Self::Mutation => "mutation",
            Self::MetaFile => "meta file",
            Self::Node => "node",
            Self::Object => "object",
            Self::Occupant => "something",
            Self::Pack => "pack of the plan",
            Self::ReadableState => "readable state",
            Self::RecordedBranch => "branch in any structure file",
            Self::Repository => "repository",
            Self::Snapshot => "snapshot",
            Self::SoundClaim => "sound claim",
            Self::Supervoxel => "supervoxel",
            Self::StructureFile => "structure file",
            Self::Table => "table",
            Self::Tag => "tag",
            Self::TornLayer => "torn layer",
            Self::UnfinishedConversion => {
                "an unfinished conversion with another source or other options"
            }
            Self::Version => "branch, tag or snapshot",
            Self::VirtualContainer => "container of virtual chunks",
            Self::WrittenArray => "array of written chunks",
        })
    }
}
