//! A cache bounded in bytes, for manifests, footers and decoded indexes.

use std::hash::Hash;

/// A concurrent cache bounded by the bytes of its values, as counted by a weigher.
///
/// A slice of a fetched buffer keeps the whole buffer alive: cache a copy, or weigh the buffer.
#[derive(Clone)]
pub struct ByteCache<K, V> {
    entries: Option<moka::sync::Cache<K, V>>,
}

impl<K, V> ByteCache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// A cache of at most `bytes_max` bytes, where `weigh` tells the bytes of an entry. With a bound
    /// of 0 it is off and keeps nothing.
    pub fn new(bytes_max: u64, weigh: impl Fn(&K, &V) -> usize + Send + Sync + 'static) -> Self {
        let entries = (bytes_max > 0).then(|| {
            moka::sync::Cache::builder()
                .max_capacity(bytes_max)
                // An entry beyond 4 GiB counts as 4 GiB, which no bound in use admits twice.
                .weigher(move |k, v| u32::try_from(weigh(k, v)).unwrap_or(u32::MAX))
                .build()
        });
        Self { entries }
    }

    /// The value of `key`, if it is kept.
    pub fn get(&self, key: &K) -> Option<V> {
        self.entries.as_ref()?.get(key)
    }

    /// Keeps a value, dropping others for it.
    pub fn insert(&self, key: K, value: V) {
        if let Some(entries) = &self.entries {
            entries.insert(key, value);
        }
    }

    /// Forgets a value.
    pub fn remove(&self, key: &K) {
        if let Some(entries) = &self.entries {
            entries.invalidate(key);
        }
    }

    /// The bytes kept, after evictions that are due.
    pub fn bytes(&self) -> u64 {
        self.entries.as_ref().map_or(0, |entries| {
            entries.run_pending_tasks();
            entries.weighted_size()
        })
    }
}

impl<K, V> std::fmt::Debug for ByteCache<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes_max = self.entries.as_ref().and_then(|entries| entries.policy().max_capacity());
        f.debug_struct("ByteCache").field("bytes_max", &bytes_max.unwrap_or(0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_counts_bytes() {
        let cache = ByteCache::new(100, |_: &u32, value: &Vec<u8>| value.len());
        for key in 0..50 {
            cache.insert(key, vec![0; 10]);
        }
        assert!(cache.bytes() <= 100, "{}", cache.bytes());
        assert!(cache.bytes() > 0);
    }

    #[test]
    fn what_was_inserted_is_found_until_removed() {
        let cache = ByteCache::new(100, |_: &&str, _: &u8| 1);
        cache.insert("a", 1);
        assert_eq!(cache.get(&"a"), Some(1));
        cache.remove(&"a");
        assert_eq!(cache.get(&"a"), None);
    }

    #[test]
    fn a_bound_of_zero_keeps_nothing() {
        let cache = ByteCache::new(0, |_: &u8, _: &u8| 0);
        cache.insert(1, 1);
        assert_eq!(cache.get(&1), None);
        assert_eq!(cache.bytes(), 0);
    }
}
