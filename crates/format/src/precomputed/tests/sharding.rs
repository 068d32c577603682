use serde_json::{Value, json};

use super::super::murmur::murmurhash3_x86_128;
use super::*;

#[test]
fn hashes_are_those_of_neuroglancer() {
    for (key, hash) in [
        (0, 0x4772_b084_e028_ae41),
        (1, 0xe8bd_67d6_16d4_ce9a),
        (42, 0xc20b_94f9_5119_f47a),
        (1 << 40, 0xf7ee_bd7b_c2dc_2c2b),
    ] {
        assert_eq!(murmurhash3_x86_128(key), hash, "{key}");
    }
}

#[test]
fn chunks_lie_in_the_shards_that_tensorstore_puts_them_in() {
    let sharding = identity(9, 6, 19);
    let slot = sharding.slot(553_418_752);
    assert_eq!(slot, Slot { shard: 16889, minishard: 0, id: 553_418_752 });
    assert_eq!(sharding.file_name(slot.shard), "041f9.shard");
    let slot = sharding.slot(11_834_938_362);
    assert_eq!((slot.minishard, slot.shard), (41, 361_173));
}

#[test]
fn names_of_files_are_those_of_the_shard_bits() {
    for (bits, shard, name) in [
        (0, 0, "0.shard"),
        (1, 1, "1.shard"),
        (4, 15, "f.shard"),
        (5, 15, "0f.shard"),
        (64, u64::MAX, "ffffffffffffffff.shard"),
    ] {
        let sharding = identity(0, 0, bits);
        assert_eq!(sharding.file_name(shard), name);
        assert_eq!(sharding.parse_file_name(name), Some(shard));
    }
    let sharding = identity(0, 0, 5);
    for other in ["f.shard", "0F.shard", "20.shard", "+f.shard", "0f", ".shard", "00f.shard"] {
        assert_eq!(sharding.parse_file_name(other), None, "{other}");
    }
}

#[test]
fn bits_at_the_limits_do_not_overflow() {
    let all = Sharding { preshift_bits: 64, ..identity(0, 0, 64) };
    assert_eq!(all.slot(u64::MAX), Slot { shard: 0, minishard: 0, id: u64::MAX });
    assert_eq!(identity(0, 0, 64).slot(u64::MAX).shard, u64::MAX);
    let slot = identity(0, 32, 32).slot(u64::MAX);
    assert_eq!((slot.shard, slot.minishard), (u64::from(u32::MAX), u64::from(u32::MAX)));
    assert_eq!(identity(0, 32, 0).index_bytes(), 16 << 32);
}

#[test]
fn a_sharding_is_read_and_written() {
    let given = json!({
        "@type": "neuroglancer_uint64_sharded_v1", "hash": "murmurhash3_x86_128", "preshift_bits": 3,
        "minishard_bits": 2, "shard_bits": 4, "minishard_index_encoding": "gzip", "data_encoding": "gzip",
    });
    let sharding = Sharding::parse(&given).unwrap();
    assert_eq!(sharding, Sharding { hash: Hash::Murmur, ..identity(3, 2, 4) });
    assert_eq!(sharding.render(), given);
}

#[test]
fn an_encoding_that_is_left_out_is_raw() {
    let mut given = identity(3, 2, 4).render();
    given.as_object_mut().unwrap().shift_remove("data_encoding");
    let sharding = Sharding::parse(&given).unwrap();
    assert_eq!(sharding.data_encoding, Packing::Raw);
    assert_eq!(sharding.minishard_index_encoding, Packing::Gzip);
}

#[test]
fn a_sharding_that_means_nothing_is_refused() {
    let changed = |name: &str, value: Value| {
        let mut given = identity(3, 2, 4).render();
        given[name] = value;
        Sharding::parse(&given).unwrap_err().what
    };
    for (name, value) in [
        ("@type", json!("neuroglancer_uint64_sharded_v2")),
        ("@type", Value::Null),
        ("hash", json!("sha1")),
        ("preshift_bits", json!(65)),
        ("preshift_bits", json!(-1)),
        ("minishard_bits", json!(33)),
        ("minishard_bits", json!(2.5)),
        ("shard_bits", json!(63)),
        ("shard_bits", Value::Null),
        ("data_encoding", json!("zstd")),
        ("minishard_index_encoding", json!(1)),
    ] {
        assert_eq!(changed(name, value), format!("sharding.{name}"));
    }
    assert_eq!(Sharding::parse(&json!([])).unwrap_err().what, "sharding");
}
