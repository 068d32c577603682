package main

// What DVID's export-shards does, with its libraries: strip by strip along x, one goroutine reads the keys and values of the strip,
// handlers unpack values and read their lists of labels, and a goroutine for each shard compresses blocks with an encoder of its
// own, builds a record of each and writes it as an Arrow stream, with a row in the index. As there, a reader goes on to the next
// strip while the shards of the last one are still being written, memory is new for each block, and nothing is synced.

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	arrowmemory "github.com/apache/arrow/go/v14/arrow/memory"
	"github.com/dgraph-io/badger/v3"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// Blocks of a shard along each axis.
	shardEdge = 32
	// Handlers for each core; DVID has 50 in all.
	handlersPerCore = 4
	// Blocks that wait for a handler, and for the goroutine of a shard.
	waitingValues, waitingBlocks = 1000, 100
	// Where the position along z, y, x is in a key.
	positionAt = 8
)

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "chunk_x", Type: arrow.PrimitiveTypes.Int32},
	{Name: "chunk_y", Type: arrow.PrimitiveTypes.Int32},
	{Name: "chunk_z", Type: arrow.PrimitiveTypes.Int32},
	{Name: "labels", Type: arrow.ListOf(arrow.PrimitiveTypes.Uint64)},
	{Name: "supervoxels", Type: arrow.ListOf(arrow.PrimitiveTypes.Uint64)},
	{Name: "dvid_compressed_block", Type: arrow.BinaryTypes.Binary,
		Metadata: arrow.NewMetadata([]string{"codec"}, []string{"zstd"})},
	{Name: "uncompressed_size", Type: arrow.PrimitiveTypes.Uint32},
}, nil)

// stored is a value with its position.
type stored struct {
	x, y, z int32
	value   []byte
}

// block is what a handler makes of it.
type block struct {
	x, y, z             int32
	labels, supervoxels []uint64
	plain               []byte
}

// strip is a row of shards along x.
type strip struct {
	lock     sync.Mutex
	shards   map[int32]*shard
	handlers sync.WaitGroup
	writers  sync.WaitGroup
}

// exporter is what all strips share.
type exporter struct {
	directory string
	blocks    atomic.Uint64
	bytes     atomic.Uint64
	labels    atomic.Uint64
	lock      sync.Mutex
	errs      []error
}

func (e *exporter) note(err error) {
	if err != nil {
		e.lock.Lock()
		e.errs = append(e.errs, err)
		e.lock.Unlock()
	}
}

// export writes all blocks of the store as shards in a new directory.
func export(db *badger.DB, directory string, told expected) (expected, error) {
	if err := os.RemoveAll(directory); err != nil {
		return expected{}, err
	}
	if err := os.MkdirAll(filepath.Join(directory, "s0"), 0o755); err != nil {
		return expected{}, err
	}
	e := &exporter{directory: directory}
	var open sync.WaitGroup
	for z := uint32(0); z < told.Grid[0]; z += shardEdge {
		for y := uint32(0); y < told.Grid[1]; y += shardEdge {
			s := &strip{shards: map[int32]*shard{}}
			values := make(chan stored, waitingValues)
			for range handlersPerCore * runtime.GOMAXPROCS(0) {
				s.handlers.Add(1)
				go e.handle(s, values)
			}
			e.note(e.read(db, told, z, y, values))
			close(values)
			open.Add(1)
			go func() {
				defer open.Done()
				s.handlers.Wait()
				for _, one := range s.shards {
					close(one.blocks)
				}
				s.writers.Wait()
			}()
		}
	}
	open.Wait()
	found := expected{Blocks: e.blocks.Load(), Bytes: e.bytes.Load(), Labels: e.labels.Load()}
	return found, errors.Join(e.errs...)
}

// read hands on the values of a strip in the order of their keys.
func (e *exporter) read(db *badger.DB, told expected, fromZ, fromY uint32, values chan<- stored) error {
	return db.View(func(txn *badger.Txn) error {
		for z := fromZ; z < min(fromZ+shardEdge, told.Grid[0]); z++ {
			for y := fromY; y < min(fromY+shardEdge, told.Grid[1]); y++ {
				config := badger.DefaultIteratorOptions
				config.Prefix = binary.BigEndian.AppendUint32(plane(told.Instance, z), y^1<<31)
				it := txn.NewIterator(config)
				for it.Rewind(); it.Valid(); it.Next() {
					value, err := it.Item().ValueCopy(nil)
					if err != nil {
						it.Close()
						return err
					}
					at := it.Item().Key()[positionAt:]
					axis := func(n int) int32 { return int32(binary.BigEndian.Uint32(at[4*n:]) ^ 1<<31) }
					values <- stored{axis(2), axis(1), axis(0), value}
				}
				it.Close()
			}
		}
		return nil
	})
}

func (e *exporter) handle(s *strip, values <-chan stored) {
	defer s.handlers.Done()
	for one := range values {
		e.bytes.Add(uint64(len(one.value)))
		made, sum, err := unpack(one)
		if err != nil {
			e.note(err)
			continue
		}
		e.labels.Add(sum)
		to, err := e.shard(s, made)
		if err != nil {
			e.note(err)
			continue
		}
		to.blocks <- made
	}
}

// unpack gives a block, and the sum of its list of labels.
func unpack(one stored) (*block, uint64, error) {
	if len(one.value) == 0 || one.value[0] != 0x40 {
		return nil, 0, fmt.Errorf("a value that is not gzip")
	}
	unzip, err := gzip.NewReader(bytes.NewBuffer(one.value[1:]))
	if err != nil {
		return nil, 0, err
	}
	var plain bytes.Buffer
	if _, err := io.Copy(&plain, unzip); err != nil {
		return nil, 0, err
	}
	found := &block{x: one.x, y: one.y, z: one.z, plain: plain.Bytes()}
	if len(found.plain) < 16 {
		return nil, 0, fmt.Errorf("a block of %d bytes", len(found.plain))
	}
	count := uint64(binary.LittleEndian.Uint32(found.plain[12:]))
	if 16+8*count > uint64(len(found.plain)) {
		return nil, 0, fmt.Errorf("a table of %d labels in %d bytes", count, len(found.plain))
	}
	var sum uint64
	found.labels, found.supervoxels = make([]uint64, count), make([]uint64, count)
	for at := range found.labels {
		label := binary.LittleEndian.Uint64(found.plain[16+8*at:])
		found.labels[at], found.supervoxels[at] = label, label
		sum += label
	}
	return found, sum, nil
}

// shard is the one that a block belongs to, begun if it is the first.
func (e *exporter) shard(s *strip, made *block) (*shard, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	number := made.x / shardEdge
	if known, ok := s.shards[number]; ok {
		return known, nil
	}
	origin := func(at int32) int32 { return at / shardEdge * shardEdge * 64 }
	name := fmt.Sprintf("%d_%d_%d", origin(made.x), origin(made.y), origin(made.z))
	one, err := begin(filepath.Join(e.directory, "s0", name))
	if err != nil {
		return nil, err
	}
	s.shards[number] = one
	s.writers.Add(1)
	go func() {
		defer s.writers.Done()
		for made := range one.blocks {
			if err := one.write(made); err != nil {
				e.note(err)
			} else {
				e.blocks.Add(1)
			}
		}
		e.note(one.end())
	}()
	return one, nil
}

// counted is a file that knows how long it is.
type counted struct {
	file  *os.File
	bytes int64
}

func (c *counted) Write(data []byte) (int, error) {
	n, err := c.file.Write(data)
	c.bytes += int64(n)
	return n, err
}

// shard is a file of records and its index. The builders are in the order of the columns.
type shard struct {
	blocks              chan *block
	file                *counted
	index               *os.File
	rows                *bufio.Writer
	stream              *ipc.Writer
	encoder             *zstd.Encoder
	packed              []byte
	x, y, z             *array.Int32Builder
	labels, supervoxels *array.ListBuilder
	bytes               *array.BinaryBuilder
	size                *array.Uint32Builder
	distinct            map[uint64]struct{}
}

func begin(stem string) (*shard, error) {
	file, err := os.Create(stem + ".arrow")
	if err != nil {
		return nil, err
	}
	index, err := os.Create(stem + ".csv")
	if err != nil {
		return nil, err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return nil, err
	}
	to := &counted{file: file}
	pool := arrowmemory.NewGoAllocator()
	one := &shard{
		blocks: make(chan *block, waitingBlocks), file: to, index: index, rows: bufio.NewWriterSize(index, 1<<20),
		stream: ipc.NewWriter(to, ipc.WithSchema(columns)), encoder: encoder,
		x: array.NewInt32Builder(pool), y: array.NewInt32Builder(pool), z: array.NewInt32Builder(pool),
		labels:      array.NewListBuilder(pool, arrow.PrimitiveTypes.Uint64),
		supervoxels: array.NewListBuilder(pool, arrow.PrimitiveTypes.Uint64),
		bytes:       array.NewBinaryBuilder(pool, arrow.BinaryTypes.Binary),
		size:        array.NewUint32Builder(pool),
		distinct:    map[uint64]struct{}{},
	}
	_, err = fmt.Fprintf(one.rows, "# schema_size=%d\nx,y,z,offset,size,batch_idx\n", to.bytes)
	return one, err
}

// write compresses a block and appends a record of it.
func (s *shard) write(made *block) error {
	s.x.Append(made.x)
	s.y.Append(made.y)
	s.z.Append(made.z)
	list(s.labels, made.labels)
	list(s.supervoxels, made.supervoxels)
	s.packed = s.encoder.EncodeAll(made.plain, s.packed[:0])
	s.bytes.Append(s.packed)
	s.size.Append(uint32(len(made.plain)))
	// DVID counts the different ones of each list for its report.
	for _, labels := range [][]uint64{made.labels, made.supervoxels} {
		clear(s.distinct)
		for _, label := range labels {
			s.distinct[label] = struct{}{}
		}
	}
	columnsOf := []arrow.Array{
		s.x.NewArray(), s.y.NewArray(), s.z.NewArray(), s.labels.NewArray(), s.supervoxels.NewArray(),
		s.bytes.NewArray(), s.size.NewArray(),
	}
	record := array.NewRecord(columns, columnsOf, 1)
	defer record.Release()
	for _, column := range columnsOf {
		column.Release()
	}
	before := s.file.bytes
	if err := s.stream.Write(record); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.rows, "%d,%d,%d,%d,%d,0\n", made.x, made.y, made.z, before, s.file.bytes-before)
	return err
}

// list appends a list of one record.
func list(to *array.ListBuilder, labels []uint64) {
	to.Append(true)
	values := to.ValueBuilder().(*array.Uint64Builder)
	for _, label := range labels {
		values.Append(label)
	}
}

func (s *shard) end() error {
	err := errors.Join(s.stream.Close(), s.rows.Flush(), s.encoder.Close())
	for _, builder := range []array.Builder{s.x, s.y, s.z, s.labels, s.supervoxels, s.bytes, s.size} {
		builder.Release()
	}
	return errors.Join(err, s.index.Close(), s.file.file.Close())
}

// syncAll makes all files durable, and says how many bytes they have.
func syncAll(directory string) (uint64, error) {
	names, err := filepath.Glob(filepath.Join(directory, "s0", "*"))
	if err != nil {
		return 0, err
	}
	var total uint64
	for _, name := range append(names, filepath.Join(directory, "s0"), directory) {
		file, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		about, err := file.Stat()
		if err == nil && about.Mode().IsRegular() {
			total += uint64(about.Size())
		}
		if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// readBack reads all shards, and says how many records they have and what the lists of supervoxels and the blocks add up to.
func readBack(directory string) (blocks, labels uint64, err error) {
	names, err := filepath.Glob(filepath.Join(directory, "s0", "*.arrow"))
	if err != nil {
		return 0, 0, err
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return 0, 0, err
	}
	defer decoder.Close()
	var plain []byte
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return 0, 0, err
		}
		stream, err := ipc.NewReader(bufio.NewReaderSize(file, 1<<20))
		if err != nil {
			return 0, 0, err
		}
		for stream.Next() {
			record := stream.Record()
			for _, label := range record.Column(4).(*array.List).ListValues().(*array.Uint64).Uint64Values() {
				labels += label
			}
			plain, err = decoder.DecodeAll(record.Column(5).(*array.Binary).Value(0), plain[:0])
			if err != nil {
				return 0, 0, err
			}
			if uint32(len(plain)) == record.Column(6).(*array.Uint32).Value(0) {
				blocks++
			}
		}
		if err := errors.Join(stream.Err(), file.Close()); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		stream.Release()
	}
	return blocks, labels, nil
}
