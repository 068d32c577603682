//! Changes of arrays, attributes and extents. All of them wait for a flush.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chunkyard_array::{ChunkIndex, ElementsBuf, Grid, Region};
use chunkyard_store::{Error, Noun, Result};

use super::changes::{ArrayChange, Description, PendingChunk};
use crate::container::handle::{Container, no_array};
use crate::container::mapping::chunks::{self, grid_of};
use crate::container::model::{ArrayMeta, AttributeValue, DType, FillValue, IndexWidth, to_u32};

/// The definition of a new array.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: Vec<u64>,
    /// The extents of its chunks; `None`: one chunk.
    pub chunk_shape: Option<Vec<u64>>,
    /// The names of its dimensions: one for each, or none at all.
    pub dimension_names: Vec<String>,
    /// The value of elements that are never written; `None`: zero, or empty.
    pub fill_value: Option<FillValue>,
    /// Its attributes.
    pub attributes: Vec<(String, AttributeValue)>,
}

impl Definition {
    /// An array of one chunk, with no optional parts.
    pub fn new(name: impl Into<String>, dtype: DType, shape: &[u64]) -> Self {
        Self {
            name: name.into(),
            dtype,
            shape: shape.to_vec(),
            chunk_shape: None,
            dimension_names: Vec::new(),
            fill_value: None,
            attributes: Vec::new(),
        }
    }

    /// The description that the container keeps. Refuses values that do not fit.
    pub fn describe(self) -> Result<Description> {
        let name = self.name;
        let fits = |what: &str, extents: &[u64]| {
            let extent = |&extent| to_u32(|| format!("{name:?}, {what}"), extent);
            extents.iter().map(extent).collect::<Result<Vec<u32>>>()
        };
        let shape = fits("shape", &self.shape)?;
        let chunk_shape = match &self.chunk_shape {
            None => shape.iter().map(|&extent| extent.max(1)).collect(),
            Some(chunk_shape) => fits("shape of the chunks", chunk_shape)?,
        };
        if chunk_shape.len() != shape.len() || chunk_shape.contains(&0) {
            return Err(Error::invalid(format!(
                "{name:?}: chunks of shape {chunk_shape:?} cannot cover an array of shape {shape:?}"
            )));
        }
        if !self.dimension_names.is_empty() && self.dimension_names.len() != shape.len() {
            return Err(Error::invalid(format!(
                "{name:?}: {} names for {} dimensions",
                self.dimension_names.len(),
                shape.len()
            )));
        }
        let meta = ArrayMeta {
            name,
            dtype: self.dtype,
            shape,
            dimension_names: self.dimension_names,
            chunk_shape,
            fill_value: self.fill_value,
            deleted: false,
            attributes: Vec::new(),
            index_width: IndexWidth::default(),
        };
        let mut described = Description { meta, attributes: Vec::new() };
        // There may be very many, so a linear search would be slow.
        let mut places: HashMap<String, usize> = HashMap::new();
        for (key, value) in self.attributes {
            described.refuse_list(&key, &value)?;
            match places.get(&key).and_then(|&at| described.attributes.get_mut(at)) {
                Some((_, old)) => *old = value,
                None => {
                    places.insert(key.clone(), described.attributes.len());
                    described.attributes.push((key, value));
                }
            }
        }
        Ok(described)
    }
}

impl Description {
    fn refuse_list(&self, key: &str, value: &AttributeValue) -> Result<()> {
        match value.is_scalar() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "attribute {key:?} of {:?}: a container of this version holds numbers, strings and \
                 booleans only",
                self.meta.name
            ))),
        }
    }

    /// Sets an attribute. Refuses values that the container cannot hold.
    fn set_attribute(&mut self, key: &str, value: AttributeValue) -> Result<()> {
        self.refuse_list(key, &value)?;
        match self.attributes.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((key.to_owned(), value)),
        }
        Ok(())
    }
}

impl Container {
    /// Defines an array. The name must be free.
    pub async fn define(&self, definition: Definition) -> Result<Arc<Description>> {
        let described = Arc::new(definition.describe()?);
        self.open.refuse_changes()?;
        let _alone = self.open.writers.exclude(true).await;
        let name = described.meta.name.clone();
        if self.open.describe(&name).await?.is_some() {
            return Err(Error::AlreadyExists { what: Noun::Array, name });
        }
        let change = ArrayChange {
            described: Some(described.clone()),
            fresh: true,
            shrunk: false,
            chunks: BTreeMap::new(),
        };
        self.open.state().uncommitted.changes.arrays.insert(name, change);
        Ok(described)
    }

    /// Deletes an array.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.open.refuse_changes()?;
        let _alone = self.open.writers.exclude(true).await;
        if self.open.describe(name).await?.is_none() {
            return Err(no_array(name));
        }
        let stack = self.open.committed().stack;
        let stored = stack.array(name).await?.is_some();
        let mut state = self.open.state();
        match stored {
            true => {
                let chunks = BTreeMap::new();
                let change = ArrayChange { described: None, fresh: true, shrunk: false, chunks };
                state.uncommitted.changes.arrays.insert(name.to_owned(), change);
            }
            // It was never flushed, so no other reader knows it.
            false => drop(state.uncommitted.changes.arrays.remove(name)),
        }
        state.uncommitted.changes.recount();
        Ok(())
    }

    /// An attribute of an array.
    pub async fn attribute(&self, name: &str, key: &str) -> Result<Option<AttributeValue>> {
        let described = self.describe(name).await?;
        let found = described.attributes.iter().find(|(known, _)| known == key);
        Ok(found.map(|(_, value)| value.clone()))
    }

    /// Sets an attribute of an array.
    pub async fn set_attribute(&self, name: &str, key: &str, value: AttributeValue) -> Result<()> {
        self.redescribe(name, |described| described.set_attribute(key, value)).await
    }

    /// Removes an attribute of an array; returns whether it existed.
    pub async fn remove_attribute(&self, name: &str, key: &str) -> Result<bool> {
        let mut there = false;
        self.redescribe(name, |described| {
            let before = described.attributes.len();
            described.attributes.retain(|(known, _)| known != key);
            there = described.attributes.len() < before;
            Ok(())
        })
        .await?;
        Ok(there)
    }

    /// Replaces all attributes of an array.
    pub async fn replace_attributes(
        &self,
        name: &str,
        attributes: Vec<(String, AttributeValue)>,
    ) -> Result<()> {
        self.redescribe(name, |described| {
            described.attributes.clear();
            attributes.into_iter().try_for_each(|(key, value)| described.set_attribute(&key, value))
        })
        .await
    }

    async fn redescribe(
        &self,
        name: &str,
        change: impl FnOnce(&mut Description) -> Result<()>,
    ) -> Result<()> {
        self.open.refuse_changes()?;
        let _alone = self.open.writers.exclude(true).await;
        let was = self.describe(name).await?;
        let mut described = (*was).clone();
        change(&mut described)?;
        if described == *was {
            return Ok(());
        }
        let mut state = self.open.state();
        state.uncommitted.changes.change(name, &was).described = Some(Arc::new(described));
        Ok(())
    }

    /// Gives an array other extents. New elements hold the fill value; elements outside the new
    /// extents are gone, even if the array grows again.
    pub async fn resize(&self, name: &str, shape: &[u64]) -> Result<()> {
        self.open.refuse_changes()?;
        let _alone = self.open.writers.exclude(true).await;
        let was = self.describe(name).await?;
        if shape.len() != was.meta.shape.len() {
            return Err(Error::invalid(format!(
                "{name:?} has {} dimensions, {} extents were given",
                was.meta.shape.len(),
                shape.len()
            )));
        }
        let mut described = (*was).clone();
        let fits = |&extent| to_u32(|| format!("{name:?}, shape"), extent);
        described.meta.shape = shape.iter().map(fits).collect::<Result<_>>()?;
        if described == *was {
            return Ok(());
        }
        let (old_grid, new_grid) = (grid_of(&was)?, grid_of(&described)?);
        let described = Arc::new(described);
        let (before, after) = (self.array_of(was.clone())?, self.array_of(described.clone())?);
        // Edge chunks hold only elements inside the array, so they change with it.
        let edges = edge_chunks(&old_grid, &new_grid);
        let located = self.open.stored(name, &edges).await?;
        let there = edges.into_iter().zip(located).filter(|(_, place)| place.is_some());
        let mut rewritten = Vec::new();
        for (index, _) in there {
            let (old, new) = (old_grid.clipped_region(&index), new_grid.clipped_region(&index));
            if let Some(kept) = old.intersect(&new) {
                let kept = chunks::region_for_model(&kept, before.node()?.spec.shape())?;
                let elements = before.reader()?.read_elements(&kept).await?;
                rewritten.push((index, kept, elements));
            }
        }
        let stack = self.open.committed().stack;
        // Chunks of older layers outside the old shape must not come back.
        let hidden = match stack.reaches_beyond(name, old_grid.array_shape()).await? {
            false => Vec::new(),
            true => {
                let all = stack.every_index(name).await?.into_iter();
                all.filter(|index| new_grid.contains(index) && !old_grid.contains(index)).collect()
            }
        };
        {
            let mut state = self.open.state();
            let change = state.uncommitted.changes.change(name, &was);
            change.described = Some(described);
            change.shrunk |= old_grid.array_shape().iter().zip(shape).any(|(old, new)| new < old);
            change.chunks.retain(|index, _| new_grid.contains(index));
            for index in rewritten.iter().map(|(index, ..)| index).chain(&hidden) {
                change.chunks.insert(index.clone(), PendingChunk::Fill);
            }
            state.uncommitted.changes.recount();
        }
        for (_, kept, elements) in rewritten {
            after.write_alone(&kept, elements).await?;
        }
        Ok(())
    }

    /// Makes an array longer along a dimension by so many positions, and writes their elements.
    pub async fn append(
        &self,
        name: &str,
        axis: usize,
        positions: u64,
        elements: ElementsBuf,
    ) -> Result<()> {
        let was: Vec<u64> =
            self.describe(name).await?.meta.shape.iter().map(|&extent| extent.into()).collect();
        let Some(&extent) = was.get(axis) else {
            return Err(Error::invalid(format!("{name:?} has no dimension {axis}")));
        };
        let (mut shape, mut origin, mut added) = (was.clone(), vec![0; was.len()], was.clone());
        shape[axis] = extent.saturating_add(positions);
        (origin[axis], added[axis]) = (extent, positions);
        self.resize(name, &shape).await?;
        let written = async {
            let array = self.array(name).await?;
            let region = Region::new(origin, added)?;
            let region = chunks::region_for_model(&region, array.node()?.spec.shape())?;
            array.writer()?.write_elements(&region, elements).await
        };
        match written.await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.resize(name, &was).await?;
                Err(error)
            }
        }
    }
}

/// The chunks that gain or lose elements: those that the smaller of the old and the new extent cuts.
fn edge_chunks(old: &Grid, new: &Grid) -> Vec<ChunkIndex> {
    let smaller: Vec<u64> =
        old.array_shape().iter().zip(new.array_shape()).map(|(&a, &b)| a.min(b)).collect();
    let mut edges = BTreeSet::new();
    for (axis, &extent) in smaller.iter().enumerate() {
        let chunk = old.chunk_shape()[axis];
        if old.array_shape()[axis] == new.array_shape()[axis] || extent.is_multiple_of(chunk) {
            continue;
        }
        let (mut origin, mut shape) = (vec![0; smaller.len()], smaller.clone());
        origin[axis] = extent / chunk * chunk;
        shape[axis] = extent - origin[axis];
        if let Ok(slab) = Region::new(origin, shape) {
            edges.extend(old.chunks_in(&slab));
        }
    }
    edges.into_iter().collect()
}
