package measure

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	xsync3 "github.com/puzpuzpuz/xsync/v3"
	xsync4 "github.com/puzpuzpuz/xsync/v4"

	"github.com/hybridlimit/hybrid/bench/report"
)

// item is a value of the maps; all keys share one, so that the bytes counted are
// the map's own.
type item struct{ _ int64 }

// table is a map as the comparison needs it.
type table struct {
	load  func(key string) (found bool)
	store func(key string, value *item)
}

type mapKind struct {
	name string
	role report.Role
	make func() table
}

// maps are compared as they come: no one is told how many keys there will be,
// which the library does not know either.
var maps = []mapKind{
	{"xsync v3 MapOf", report.Ours, func() table {
		m := xsync3.NewMapOf[string, *item]()
		return table{func(key string) bool { _, ok := m.Load(key); return ok }, m.Store}
	}},
	{"xsync v4 Map", report.Peer, func() table {
		m := xsync4.NewMap[string, *item]()
		return table{func(key string) bool { _, ok := m.Load(key); return ok }, m.Store}
	}},
	{"sync.Map", report.Peer, func() table {
		m := &sync.Map{}
		return table{
			func(key string) bool { _, ok := m.Load(key); return ok },
			func(key string, value *item) { m.Store(key, value) },
		}
	}},
}

// mapNumbers are those of one map, a number per round.
type mapNumbers struct {
	insert, insertAll, bytes []float64
	reads                    [][]float64
}

// Maps compares the map of the library's key table with those that it could be.
func Maps(ctx context.Context, c Config, say func(format string, args ...any)) (report.Table, error) {
	if err := c.validate(); err != nil {
		return report.Table{}, err
	}
	keys := makeKeys(c.keys())
	sizes := c.Sizes[max(0, len(c.Sizes)-2):]
	all := make([]mapNumbers, len(maps))
	for round := range c.Rounds {
		say("maps: round %d of %d", round+1, c.Rounds)
		for i, kind := range maps {
			if ctx.Err() != nil {
				return report.Table{}, ctx.Err()
			}
			all[i].measure(kind, keys, sizes, c.Round)
		}
	}
	return mapsTable(all, sizes), nil
}

// measure fills a map, reads it at each size, and fills another from all cores.
func (n *mapNumbers) measure(kind mapKind, keys []string, sizes []int, d time.Duration) {
	own := strangers(keys)
	value := &item{}
	before := heap()
	m := kind.make()
	begin := time.Now()
	for _, key := range own {
		m.store(key, value)
	}
	n.insert = append(n.insert, float64(time.Since(begin))/float64(len(own)))
	n.bytes = append(n.bytes, (heap()-before)/float64(len(own)))
	var reads []float64
	for _, size := range sizes {
		for _, workers := range []int{1, runtime.GOMAXPROCS(0)} {
			reads = append(reads, readMap(m, keys, size, workers, d))
		}
	}
	n.reads = append(n.reads, reads)
	n.insertAll = append(n.insertAll, insertFromAll(kind.make(), own, value))
	runtime.KeepAlive(m)
}

// readMap reads so many of the keys over and over.
func readMap(m table, keys []string, size, workers int, d time.Duration) float64 {
	place := func(w int) int { return w * size / workers }
	return perCall(workers, d, place, func(i int) {
		if !m.load(keys[i&(size-1)]) {
			panic("measure: a key that was stored is not there")
		}
	})
}

func insertFromAll(m table, keys []string, value *item) float64 {
	runtime.GC()
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	begin := time.Now()
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(keys); i += workers {
				m.store(keys[i], value)
			}
		})
	}
	wg.Wait()
	return float64(time.Since(begin)) / float64(len(keys))
}

func mapsTable(all []mapNumbers, sizes []int) report.Table {
	t := report.Table{
		Name: "maps", Title: "Maps", Base: maps[0].name,
		About: fmt.Sprintf("Nanoseconds per call, from one goroutine and from one on each of %d cores; keys of 16 bytes, read in another order than inserted. "+
			"Inserts and bytes are those of a map that grows from nothing to %s; bytes are the map's own, without keys and values.", runtime.GOMAXPROCS(0), count(sizes[len(sizes)-1])),
	}
	for _, size := range sizes {
		t.Columns = append(t.Columns,
			report.Column{Head: "read, " + count(size) + ", ns", Better: report.Less},
			report.Column{Head: "all cores, ns", Better: report.Less})
	}
	t.Columns = append(t.Columns,
		report.Column{Head: "insert, ns", Better: report.Less},
		report.Column{Head: "all cores, ns", Better: report.Less},
		report.Column{Head: "bytes per key", Better: report.Less})
	for i, kind := range maps {
		t.Rows = append(t.Rows, report.Row{Name: kind.name, Role: kind.role, Values: all[i].medians()})
	}
	return t
}

func (n *mapNumbers) medians() []float64 {
	var values []float64
	for i := range n.reads[0] {
		var column []float64
		for _, round := range n.reads {
			column = append(column, round[i])
		}
		values = append(values, median(column))
	}
	return append(values, median(n.insert), median(n.insertAll), median(n.bytes))
}
