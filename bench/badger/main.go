// The rival of our reader of DVID's store: Badger itself, with as many goroutines as there are cores.
//
//	badger-bench values DIRECTORY source=STORE    every value of the label blocks, its checksum compared
//	badger-bench labels DIRECTORY source=STORE    and unpacked, and its list of labels read
//	badger-bench export DIRECTORY source=STORE    all of it as Arrow shards, as DVID writes them; see export.go
//
// STORE is what peers/dvid_store.py made. All checksums that Badger can compare, it compares. Of the first two, the keys are
// divided by planes of blocks, which the goroutines take in turn; each walks its plane with Badger's own
// iterator, which fetches 100 values ahead. Prints the line that bench/measure describes.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v3"
	"github.com/dgraph-io/badger/v3/options"
	"github.com/klauspost/compress/gzip"
)

// expected is what is in the store, by who made it.
type expected struct {
	Instance uint32    `json:"instance"`
	Grid     [3]uint32 `json:"grid"`
	Planes   uint32    `json:"planes"`
	Blocks   uint64    `json:"blocks"`
	Bytes    uint64    `json:"value_bytes"`
	Labels   uint64    `json:"label_sum"`
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "badger-bench:", err)
		os.Exit(1)
	}
}

// memory is a figure of this process, in bytes.
func memory(name string) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	fail(err)
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

func cpu() float64 {
	var use syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

// worker keeps what one goroutine can use again.
type worker struct {
	packed bytes.Reader
	gunzip *gzip.Reader
	plain  bytes.Buffer
}

// labels unpacks a value of DVID and adds up its list of labels.
func (w *worker) labels(value []byte) (uint64, error) {
	if len(value) == 0 || value[0] != 0x40 {
		return 0, fmt.Errorf("a value that is not gzip")
	}
	w.packed.Reset(value[1:])
	var err error
	if w.gunzip == nil {
		w.gunzip, err = gzip.NewReader(&w.packed)
	} else {
		err = w.gunzip.Reset(&w.packed)
	}
	if err != nil {
		return 0, err
	}
	w.plain.Reset()
	if _, err := io.Copy(&w.plain, w.gunzip); err != nil {
		return 0, err
	}
	block := w.plain.Bytes()
	if len(block) < 24 {
		return 0, fmt.Errorf("a block of %d bytes", len(block))
	}
	count := uint64(binary.LittleEndian.Uint32(block[12:]))
	if count == 0 || 16+8*count > uint64(len(block)) {
		return 0, fmt.Errorf("a table of %d labels in %d bytes", count, len(block))
	}
	var sum uint64
	for at := uint64(0); at < count; at++ {
		sum += binary.LittleEndian.Uint64(block[16+8*at:])
	}
	return sum, nil
}

// plane is what the keys of the label blocks of scale 0 in a plane begin with.
func plane(instance, z uint32) []byte {
	key := binary.BigEndian.AppendUint32([]byte{1}, instance)
	key = append(key, 0xba, 1, 0)
	return binary.BigEndian.AppendUint32(key, z^1<<31)
}

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("badger-bench WORKLOAD DIRECTORY source=STORE"))
	}
	// Called by the name of the workload, as all workers are.
	work := strings.TrimPrefix(strings.TrimPrefix(os.Args[1], "dvid-"), "export-")
	if work == "arrow" {
		work = "export"
	}
	var store string
	repeats := 1
	for _, pair := range os.Args[3:] {
		if rest, ok := strings.CutPrefix(pair, "source="); ok {
			store = rest
		}
		if rest, ok := strings.CutPrefix(pair, "repeats="); ok {
			repeats, _ = strconv.Atoi(rest)
		}
	}
	text, err := os.ReadFile(filepath.Join(store, "expected.json"))
	fail(err)
	var told expected
	fail(json.Unmarshal(text, &told))

	var returned, durable samples
	facts := map[string]any{}
	var anonymous uint64
	equal := true
	for range max(repeats, 1) {
		began, spent := time.Now(), cpu()
		found, err := run(filepath.Join(store, "data/badger"), work, os.Args[2], told, &anonymous)
		fail(err)
		returned.add(began, spent)
		equal = equal && found.Blocks == told.Blocks && found.Bytes == told.Bytes
		equal = equal && (work == "values" || found.Labels == told.Labels)
		if work == "export" {
			total, err := syncAll(os.Args[2])
			fail(err)
			durable.add(began, spent)
			facts["stored-bytes"] = total
			facts["memory"] = memory("VmHWM")
		}
	}
	measures := map[string]any{"returned": returned}
	if work == "export" {
		blocks, labels, err := readBack(os.Args[2])
		fail(err)
		equal = equal && blocks == told.Blocks && labels == told.Labels
		fail(os.RemoveAll(os.Args[2]))
		measures["durable"] = durable
	} else {
		// Without mapped files, at the end of the work.
		facts["memory"] = anonymous
	}
	fail(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"measures": measures, "facts": facts, "equal": equal,
	}))
}

// samples are wall and CPU times of one measure.
type samples struct {
	Wall []float64 `json:"wall"`
	CPU  []float64 `json:"cpu"`
}

func (s *samples) add(began time.Time, spent float64) {
	s.Wall, s.CPU = append(s.Wall, time.Since(began).Seconds()), append(s.CPU, cpu()-spent)
}

func run(directory, work, target string, told expected, anonymous *uint64) (expected, error) {
	config := badger.DefaultOptions(directory).WithReadOnly(true).WithLogger(nil).
		WithVerifyValueChecksum(true).WithChecksumVerificationMode(options.OnTableAndBlockRead)
	db, err := badger.Open(config)
	if err != nil {
		return expected{}, err
	}
	if work == "export" {
		found, err := export(db, target, told)
		return found, errors.Join(err, db.Close())
	}
	var next atomic.Uint32
	var found expected
	var first error
	var lock sync.Mutex
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Add(1)
		go func() {
			defer group.Done()
			own, err := scan(db, &next, work, told)
			lock.Lock()
			defer lock.Unlock()
			found.Blocks += own.Blocks
			found.Bytes += own.Bytes
			found.Labels += own.Labels
			if first == nil {
				first = err
			}
		}()
	}
	group.Wait()
	if first != nil {
		return found, first
	}
	*anonymous = max(*anonymous, memory("RssAnon"))
	return found, db.Close()
}

// scan takes planes until none is left.
func scan(db *badger.DB, next *atomic.Uint32, work string, told expected) (expected, error) {
	var own expected
	var w worker
	err := db.View(func(txn *badger.Txn) error {
		for {
			z := next.Add(1) - 1
			if z >= told.Planes {
				return nil
			}
			config := badger.DefaultIteratorOptions
			config.Prefix = plane(told.Instance, z)
			it := txn.NewIterator(config)
			for it.Rewind(); it.Valid(); it.Next() {
				err := it.Item().Value(func(value []byte) error {
					own.Blocks++
					own.Bytes += uint64(len(value))
					if work == "values" {
						return nil
					}
					sum, err := w.labels(value)
					own.Labels += sum
					return err
				})
				if err != nil {
					it.Close()
					return err
				}
			}
			it.Close()
		}
	})
	return own, err
}
