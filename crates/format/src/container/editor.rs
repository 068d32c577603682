//! A container as groups and arrays by path, changed in place.
//!
//! The rule is in [`mapping`]: an array is named by its path; a group is stored only if it has
//! attributes, or if no node below implies it. Changes wait for a flush like all others.

use std::collections::HashMap;
use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_store::{Error, Noun, Result};

use super::array::ContainerArray;
use super::handle::Container;
use super::mapping::{self, array_of, dataset_of, entries_of, entry_of, group_name, name_of};
use super::model::{AttributeValue, DType};
use crate::container::mapping::attribute_type::AttributeType;
use crate::container::write::changes::Description;
use crate::container::write::edit::Definition;
use crate::normalise_path;
use crate::{ArrayNode, Dataset, Node};

/// Changes a container by paths. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ContainerEditor {
    container: Container,
}

impl Container {
    /// The whole content as of now, changes that wait included.
    pub async fn dataset(&self) -> Result<Dataset> {
        let mut described = Vec::new();
        for name in self.names().await? {
            described.push((*self.describe(&name).await?).clone());
        }
        dataset_of(&described)
    }
}

impl From<Description> for Definition {
    fn from(described: Description) -> Self {
        let Description { meta, attributes } = described;
        let extents = |extents: Vec<u32>| extents.into_iter().map(u64::from).collect();
        Self {
            name: meta.name,
            dtype: meta.dtype,
            shape: extents(meta.shape),
            chunk_shape: Some(extents(meta.chunk_shape)),
            dimension_names: meta.dimension_names,
            fill_value: meta.fill_value,
            attributes,
        }
    }
}

impl ContainerEditor {
    /// An editor of this container.
    pub fn new(container: Container) -> Self {
        Self { container }
    }

    /// The container.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// The node at a path; `None` if there is none.
    pub async fn node(&self, path: &str) -> Result<Option<Node>> {
        let path = normalise_path(path)?;
        for name in [name_of(&path).to_owned(), group_name(&path)] {
            if let Some(described) = self.container.open.describe(&name).await? {
                let found = dataset_of(&[(*described).clone()])?.nodes.remove(&path);
                return Ok(found);
            }
        }
        let implied = path == "/" || self.is_inhabited(&path).await?;
        Ok(implied.then(|| Node::Group(GroupSpec::new(Attributes::new()))))
    }

    /// The array at a path as it is now, for reading and writing.
    pub async fn array(&self, path: &str) -> Result<ContainerArray> {
        self.container.array(name_of(&normalise_path(path)?)).await
    }

    /// Creates an array, and the groups above it. The container itself decides how chunks are packed:
    /// codecs of the specification have no effect here, and shards are refused.
    pub async fn create_array(&self, path: &str, spec: &ArraySpec) -> Result<()> {
        let path = self.free_path(path).await?;
        let node = ArrayNode::new(spec)?;
        if node.sharding.is_some() {
            return Err(Error::unsupported(format!("{path}: shards in a container")));
        }
        let entry = entry_of(name_of(&path), &node)?;
        self.container.define(entry.into()).await.map(drop)
    }

    /// The same for elements of this type, which may be lists: the specification has the type within
    /// the lists, see [`mapping::data_type_of`], and no dimensions for them.
    pub async fn create_array_of(&self, path: &str, spec: &ArraySpec, dtype: DType) -> Result<()> {
        let path = self.free_path(path).await?;
        let mut entry = entry_of(name_of(&path), &ArrayNode::new(spec)?)?;
        if let DType::FixedSizeList { child, .. } = &dtype
            && dtype.item_size().is_none()
        {
            return Err(Error::unsupported(format!(
                "{path}: lists of fixed size of {child:?}, which have no fixed size themselves"
            )));
        }
        entry.meta.dtype = dtype;
        self.container.define(entry.into()).await.map(drop)
    }

    /// Creates a group, and the groups above it.
    pub async fn create_group(&self, path: &str, attributes: Attributes) -> Result<()> {
        let path = self.free_path(path).await?;
        let marker = marker_of(&path, GroupSpec::new(attributes))?;
        self.container.define(marker.into()).await.map(drop)
    }

    /// Replaces all attributes of a node. An attribute that does not change keeps its type; any other
    /// becomes an integer or a fraction of 64 bits, a text or a boolean.
    pub async fn set_attributes(&self, path: &str, attributes: Attributes) -> Result<()> {
        self.set_typed_attributes(path, attributes, &[]).await
    }

    /// The same; the listed attributes get these types.
    pub async fn set_typed_attributes(
        &self,
        path: &str,
        attributes: Attributes,
        types: &[(String, AttributeType)],
    ) -> Result<()> {
        let path = normalise_path(path)?;
        match self.require(&path).await? {
            Node::Array(array) => {
                let spec = array.spec.replace_attributes(attributes)?;
                let name = name_of(&path);
                let entry = entry_of(name, &ArrayNode { spec, ..(*array).clone() })?;
                let was = self.container.describe(name).await?;
                let attributes = typed(&was.attributes, entry.attributes, types)?;
                self.container.replace_attributes(name, attributes).await
            }
            Node::Group(group) => {
                let mut marker = marker_of(&path, group.replace_attributes(attributes))?;
                let name = marker.meta.name.clone();
                let was = self.container.open.describe(&name).await?;
                let had = was.as_ref().map_or(&[][..], |was| &was.attributes);
                marker.attributes = typed(had, marker.attributes, types)?;
                match was {
                    Some(_) => self.container.replace_attributes(&name, marker.attributes).await,
                    None if marker.attributes.is_empty() => Ok(()),
                    None => self.container.define(marker.into()).await.map(drop),
                }
            }
        }
    }

    /// Gives attributes of a node other types; their values stay.
    pub async fn retype_attributes(
        &self,
        path: &str,
        types: &[(String, AttributeType)],
    ) -> Result<()> {
        let path = normalise_path(path)?;
        for name in [name_of(&path).to_owned(), group_name(&path)] {
            if let Some(described) = self.container.open.describe(&name).await? {
                let attributes = typed(&[], described.attributes.clone(), types)?;
                return self.container.replace_attributes(&name, attributes).await;
            }
        }
        Err(Error::NotFound { what: Noun::Node, name: path })
    }

    /// The attributes of a node as the container keeps them, with their types.
    pub async fn typed_attributes(&self, path: &str) -> Result<Vec<(String, AttributeValue)>> {
        let path = normalise_path(path)?;
        for name in [name_of(&path).to_owned(), group_name(&path)] {
            if let Some(described) = self.container.open.describe(&name).await? {
                return Ok(described.attributes.clone());
            }
        }
        self.require(&path).await.map(|_| Vec::new())
    }

    /// Gives an array other extents, as [`Container::resize`] does.
    pub async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        let path = normalise_path(path)?;
        let array = self.array(&path).await?;
        // Lists of fixed size are dimensions here but part of the type there.
        let rank = array.described().meta.shape.len();
        let has = array_of(array.described())?;
        let (outer, inner) = shape.split_at_checked(rank).unwrap_or((shape, &[]));
        if has.spec.shape().get(rank..) != Some(inner) {
            return Err(Error::invalid(format!(
                "{path} has shape {:?}, of which only the first {rank} extents can change",
                has.spec.shape()
            )));
        }
        self.container.resize(name_of(&path), outer).await
    }

    /// Deletes an array, or a group and all nodes below it.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let path = normalise_path(path)?;
        if path == "/" {
            return Err(Error::invalid("the root of a container cannot be deleted"));
        }
        match self.require(&path).await? {
            Node::Array(_) => self.container.delete(name_of(&path)).await,
            Node::Group(_) => {
                for name in self.container.names().await? {
                    if name.starts_with(&group_name(&path)) {
                        self.container.delete(&name).await?;
                    }
                }
                Ok(())
            }
        }
    }

    async fn require(&self, path: &str) -> Result<Node> {
        let found = self.node(path).await?;
        found.ok_or_else(|| Error::NotFound { what: Noun::Node, name: path.to_owned() })
    }

    /// Checks that a node can be created at a path.
    async fn free_path(&self, path: &str) -> Result<String> {
        let path = normalise_path(path)?;
        match self.node(&path).await? {
            None => {}
            Some(node) => {
                let what = if matches!(node, Node::Array(_)) { Noun::Array } else { Noun::Group };
                return Err(Error::AlreadyExists { what, name: path });
            }
        }
        for (at, _) in path.match_indices('/').skip(1) {
            let above = path.get(..at).unwrap_or_default();
            if self.container.open.describe(name_of(above)).await?.is_some() {
                let what = format!("{path} cannot be within {above}, which is an array");
                return Err(Error::invalid(what));
            }
        }
        Ok(path)
    }

    /// Whether there is any node below a path.
    async fn is_inhabited(&self, path: &str) -> Result<bool> {
        let (names, prefix) = (self.container.names().await?, group_name(path));
        // The names are sorted: those with the prefix follow it.
        let first = names.partition_point(|name| *name < prefix);
        Ok(names.get(first).is_some_and(|name| name.starts_with(&prefix)))
    }
}

/// New attributes with their types: the requested types, or the old ones. The attributes came through
/// JSON, which knows fewer types.
fn typed(
    had: &[(String, AttributeValue)],
    attributes: Vec<(String, AttributeValue)>,
    types: &[(String, AttributeType)],
) -> Result<Vec<(String, AttributeValue)>> {
    let had: HashMap<&str, &AttributeValue> =
        had.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let wanted: HashMap<&str, AttributeType> =
        types.iter().map(|(key, wanted)| (key.as_str(), *wanted)).collect();
    let mut given = 0;
    let mut all = Vec::with_capacity(attributes.len());
    for (key, value) in attributes {
        let value = match (wanted.get(key.as_str()), had.get(key.as_str())) {
            (Some(wanted), _) => {
                given += 1;
                let refused = |error| Error::invalid(format!("attribute {key:?}: {error}"));
                wanted.value(&value).map_err(refused)?
            }
            (None, Some(had)) if had.means(&value) => (*had).clone(),
            _ => value,
        };
        all.push((key, value));
    }
    if given < wanted.len() {
        let missing = wanted.keys().find(|key| all.iter().all(|(known, _)| known != *key));
        return Err(Error::invalid(format!(
            "attribute {:?} is none of them, or null, a list or an object, which have no type",
            missing.copied().unwrap_or_default()
        )));
    }
    Ok(all)
}

/// The entry that stands for a group that no other entry implies.
fn marker_of(path: &str, group: GroupSpec) -> Result<mapping::Entry> {
    let mut dataset = Dataset::default();
    dataset.nodes.insert(path.to_owned(), Node::Group(group));
    let missing = || Error::NotFound { what: Noun::Group, name: path.to_owned() };
    entries_of(&dataset)?.pop().ok_or_else(missing)
}

impl ContainerEditor {
    /// The attributes of a node as the caller set them: numbers that are not finite are numbers, see
    /// [`non_finite`](chunkyard_array::non_finite).
    pub async fn plain_attributes(&self, path: &str) -> Result<Attributes> {
        Ok(match self.require(&normalise_path(path)?).await? {
            Node::Array(array) => array.spec.plain_attributes(),
            Node::Group(group) => group.plain_attributes(),
        })
    }

    /// The attributes of a node as in its document, which is JSON.
    pub async fn attributes(&self, path: &str) -> Result<Attributes> {
        Ok(match self.require(&normalise_path(path)?).await? {
            Node::Array(array) => Arc::unwrap_or_clone(array).spec.attributes().clone(),
            Node::Group(group) => group.attributes().clone(),
        })
    }
}
