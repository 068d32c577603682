//! The links of a group, in any of the three ways that HDF5 keeps them.
//!
//! The parser can list the members of a group by itself, but one member that it does not understand
//! fails the whole listing, and external links vanish. Here a link is a name and a target, and each
//! target is checked on its own.

use hdf5_reader::Hdf5File;
use hdf5_reader::btree_v1::collect_btree_v1_leaves_storage;
use hdf5_reader::btree_v2::{BTreeV2Header, BTreeV2Record, collect_btree_v2_records_storage};
use hdf5_reader::error::{Error as ParserError, Result as ParserResult};
use hdf5_reader::fractal_heap::{FractalHeap, FractalHeapDirectBlockCache};
use hdf5_reader::io::Cursor;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::link::{self, LinkMessage, LinkTarget};
use hdf5_reader::messages::link_info::LinkInfoMessage;
use hdf5_reader::messages::symbol_table_msg::SymbolTableMessage;
use hdf5_reader::object_header::ObjectHeader;
use hdf5_reader::storage::Storage;
use hdf5_reader::symbol_table::SymbolTableNode;

/// HDF5 §"Symbol Table Entry": the scratch pad holds the value of a soft link.
const CACHED_SOFT_LINK: u32 = 2;

/// The links of the group with this header, in the order of creation where that is recorded.
pub(super) fn list(file: &Hdf5File, header: &ObjectHeader) -> ParserResult<Vec<LinkMessage>> {
    let (storage, superblock) = (file.storage(), file.superblock());
    let at = At { storage, offset: superblock.offset_size, length: superblock.length_size };
    let mut links = Vec::new();
    for message in &header.messages {
        match message {
            HdfMessage::SymbolTable(table) => at.symbols(table, &mut links)?,
            HdfMessage::Link(link) => links.push(link.clone()),
            HdfMessage::LinkInfo(info) => at.dense(info, &mut links)?,
            _ => {}
        }
    }
    if links.iter().all(|link| link.creation_order.is_some()) {
        links.sort_by_key(|link| link.creation_order);
    }
    Ok(links)
}

/// The storage of the structures, and the width of their fields.
struct At<'a> {
    storage: &'a dyn Storage,
    offset: u8,
    length: u8,
}

impl At<'_> {
    /// The oldest way: a B-tree of symbol table nodes, names in a heap.
    fn symbols(
        &self,
        table: &SymbolTableMessage,
        links: &mut Vec<LinkMessage>,
    ) -> ParserResult<()> {
        let heap = LocalHeap::parse_at_storage(
            self.storage,
            table.heap_address,
            self.offset,
            self.length,
        )?;
        let leaves = collect_btree_v1_leaves_storage(
            self.storage,
            table.btree_address,
            self.offset,
            self.length,
            None,
            &[],
            None,
        )?;
        let names_bytes = usize::try_from(heap.data_segment_size)
            .map_err(|_| ParserError::OffsetOutOfBounds(heap.data_segment_size))?;
        let names = self.storage.read_range(heap.data_segment_address, names_bytes)?;
        for (_, address) in leaves {
            for entry in self.node(address)?.entries {
                let name = string_at(&names, entry.link_name_offset)?;
                let target = if entry.cache_type == CACHED_SOFT_LINK {
                    let [a, b, c, d, ..] = entry.scratch;
                    let value = u64::from(u32::from_le_bytes([a, b, c, d]));
                    LinkTarget::Soft { path: string_at(&names, value)? }
                } else {
                    LinkTarget::Hard { address: entry.object_header_address }
                };
                links.push(LinkMessage { name, target, creation_order: None });
            }
        }
        Ok(())
    }

    fn node(&self, address: u64) -> ParserResult<SymbolTableNode> {
        // Signature, version, a reserved byte, and the number of entries.
        let head = self.storage.read_range(address, 8)?;
        let count = match head.as_ref() {
            [.., low, high] => usize::from(u16::from_le_bytes([*low, *high])),
            _ => return Err(ParserError::InvalidSymbolTableNodeSignature),
        };
        // Two offsets, cache type, reserved, scratch pad.
        let bytes = 8 + count * (2 * usize::from(self.offset) + 4 + 4 + 16);
        let node = self.storage.read_range(address, bytes)?;
        SymbolTableNode::parse(&mut Cursor::new(&node), self.offset, self.length)
    }

    /// The way of large groups: a B-tree of heap identifiers, link messages in the heap.
    fn dense(&self, info: &LinkInfoMessage, links: &mut Vec<LinkMessage>) -> ParserResult<()> {
        let (storage, offset, length) = (self.storage, self.offset, self.length);
        if Cursor::is_undefined_offset(info.fractal_heap_address, offset) {
            return Ok(());
        }
        let heap =
            FractalHeap::parse_at_storage(storage, info.fractal_heap_address, offset, length)?;
        let index = info.btree_name_index_address;
        let index = BTreeV2Header::parse_at_storage(storage, index, offset, length)?;
        let records =
            collect_btree_v2_records_storage(storage, &index, offset, length, None, &[], None)?;
        let mut blocks = FractalHeapDirectBlockCache::default();
        for record in records {
            let BTreeV2Record::LinkNameHash { heap_id, .. } = record else { continue };
            let message =
                heap.get_object_storage_cached(&heap_id, storage, offset, length, &mut blocks)?;
            let mut cursor = Cursor::new(&message);
            links.push(link::parse(&mut cursor, offset, length, message.len())?);
        }
        Ok(())
    }
}

/// The string that begins here in a heap and ends with a zero.
fn string_at(heap: &[u8], offset: u64) -> ParserResult<String> {
    let rest = usize::try_from(offset).ok().and_then(|start| heap.get(start..));
    let text = rest.and_then(|rest| rest.split(|&byte| byte == 0).next());
    let text = text.ok_or(ParserError::OffsetOutOfBounds(offset))?;
    String::from_utf8(text.to_vec())
        .map_err(|cause| ParserError::InvalidData(format!("a name that is not UTF-8: {cause}")))
}
