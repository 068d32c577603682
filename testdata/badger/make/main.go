// Write a Badger directory that has everything a reader meets: several levels, several versions of
// keys, deletions, values that expired and values that will, small values and values in value logs.
// Then list what Badger itself reads from it. Or list any directory.
//
//	make_badger -compression zstd DIR     writes DIR, and lists it at three times
//	make_badger -list DIR                 lists DIR, which was closed cleanly
//	make_badger -list -replay DIR         the same for one that was not, and changes it
//
// A list has a line per live key: time (the first form alone), hex key, version (likewise), length of the
// value, CRC-32C of the value.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"

	"github.com/dgraph-io/badger/v3"
	"github.com/dgraph-io/badger/v3/options"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "make_badger:", err)
		os.Exit(1)
	}
}

// value is short for some keys and goes to a value log for others.
func value(key, time int) []byte {
	text := fmt.Sprintf("value of key %d at time %d, ", key, time)
	return bytes.Repeat([]byte(text), 1+(key*7+time)%40)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// list prints what Badger itself reads from a directory.
func list(directory string, replay bool) {
	db, err := badger.Open(badger.DefaultOptions(directory).WithReadOnly(!replay).WithLogger(nil))
	fail(err)
	out := bufio.NewWriter(os.Stdout)
	fail(db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			item := it.Item()
			value, err := item.ValueCopy(nil)
			fail(err)
			fmt.Fprintf(out, "%x %d %08x\n", item.Key(), len(value), crc32.Checksum(value, castagnoli))
		}
		return nil
	}))
	fail(out.Flush())
	fail(db.Close())
}

func main() {
	compression := flag.String("compression", "zstd", "none, snappy or zstd")
	listing := flag.Bool("list", false, "list a directory, and write none")
	replay := flag.Bool("replay", false, "replay the logs of a directory that was not closed")
	flag.Parse()
	if *listing {
		list(flag.Arg(0), *replay)
		return
	}
	kinds := map[string]options.CompressionType{"none": options.None, "snappy": options.Snappy, "zstd": options.ZSTD}
	opt := badger.DefaultOptions(flag.Arg(0)).
		WithLogger(nil).
		WithCompression(kinds[*compression]).
		WithNumVersionsToKeep(math.MaxInt32).
		WithValueThreshold(300).
		WithMemTableSize(1 << 20).
		WithBaseTableSize(8 << 10).
		WithBaseLevelSize(8 << 10).
		WithLevelSizeMultiplier(2).
		WithBlockSize(1 << 10).
		WithValueLogFileSize(1 << 20).
		WithNumCompactors(2)
	db, err := badger.OpenManaged(opt.WithCompactL0OnClose(true))
	fail(err)
	for time := 1; time <= 12; time++ {
		batch := db.NewWriteBatchAt(uint64(time * 10))
		for key := 0; key < 600; key++ {
			if (key+time)%3 != 0 {
				continue
			}
			name := []byte(fmt.Sprintf("key-%05d", key))
			entry := badger.NewEntry(name, value(key, time))
			switch {
			case (key+time)%17 == 0:
				fail(batch.Delete(name))
				continue
			case (key+time)%19 == 0:
				entry.ExpiresAt = 1
			case (key+time)%23 == 0:
				entry.ExpiresAt = 4102444800 // the year 2100
			}
			fail(batch.SetEntryAt(entry, uint64(time*10)))
		}
		fail(batch.Flush())
		// Tables of several levels: what is there sinks, what comes later stays above.
		if time == 4 || time == 7 || time == 10 {
			fail(db.Close())
			db, err = badger.OpenManaged(opt.WithCompactL0OnClose(time < 7))
			fail(err)
		}
	}
	fail(db.Close())
	db, err = badger.OpenManaged(opt)
	fail(err)
	out := bufio.NewWriter(os.Stdout)
	for _, time := range []uint64{55, 90, math.MaxUint64} {
		txn := db.NewTransactionAt(time, false)
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		for it.Rewind(); it.Valid(); it.Next() {
			item := it.Item()
			value, err := item.ValueCopy(nil)
			fail(err)
			fmt.Fprintf(out, "%d %x %d %d %08x\n", time, item.Key(), item.Version(), len(value), crc32.Checksum(value, castagnoli))
		}
		it.Close()
		txn.Discard()
	}
	fail(out.Flush())
	fail(db.Close())
}
