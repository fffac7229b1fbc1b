package hybrid

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// What docs/operations.md tells of Redis's memory: of an account in the state
// that it is in most of the time, with a slice out and a used that is no whole
// number, for a key of 16 bytes.
func TestMemoryPerAccountInRedis(t *testing.T) {
	accounts := 100_000
	if raceDetector {
		accounts /= 4
	}
	server, ctx := redistest.Start(t, "--slowlog-log-slower-than", "-1"), context.Background() // or a busy machine fills the log
	rdb := server.Client(t)
	use(t, server, 1) // so that the script is there
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	empty := settledMemory(t, rdb)
	store := use(t, server, accounts)
	perAccount := float64(settledMemory(t, rdb)-empty) / float64(accounts)
	name := store.Account("api", fmt.Sprintf("%016d", 7))
	alone, err := rdb.MemoryUsage(ctx, name).Result()
	if err != nil {
		t.Fatal(err)
	}
	state := rdb.Get(ctx, name).Val()
	t.Logf("MEMORY USAGE %d B; used_memory %.1f B per account; state %q; %v left", alone, perAccount, state, rdb.PTTL(ctx, name).Val())
	if n := rdb.DBSize(ctx).Val(); n != int64(accounts) {
		t.Errorf("%d accounts, want %d", n, accounts)
	}
	if strings.HasSuffix(state, " 0 0") || !strings.Contains(strings.Fields(state)[0], ".") {
		t.Errorf("the state %q is shorter than most", state)
	}
	if alone > 136 {
		t.Errorf("MEMORY USAGE %d B, want at most 136", alone)
	}
	if perAccount > 200 {
		t.Errorf("used_memory %.1f B per account, want at most 200", perAccount)
	}
}

// use settles so many accounts twice: a request that takes a slice along, and,
// later, what was used of it. Its connections are closed then: their buffers are
// no account's.
func use(t *testing.T, server *redistest.Server, accounts int) *exact.Store {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	store, err := exact.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	rule := PerHour(1000).Rule()
	grants := make([]slice.Grant, accounts)
	for round := range 2 {
		batch := make([]*slice.Settle, accounts)
		for i := range batch {
			batch[i] = &slice.Settle{Account: store.Account("api", fmt.Sprintf("%016d", i)), Rule: rule}
			u := &batch[i].Usage
			u.Want, u.Least, u.Unit, u.Divisor = 25, 1, 1, 40
			switch round {
			case 0:
				u.Needs = []slice.Need{{Cost: 10, Count: 1}}
			case 1:
				u.Tag, u.Spent, u.Held = grants[i].Tag, 20, grants[i].Granted-20
			}
		}
		store.Settle(context.Background(), batch)
		for i, e := range batch {
			if e.Outcome != slice.Ran {
				t.Fatal(e.Err)
			}
			grants[i] = e.Grant
		}
	}
	return store
}

// settledMemory is the memory in use once Redis has freed what closed connections
// and tables that grew leave behind, which it does in the background.
func settledMemory(t *testing.T, rdb *redis.Client) (least int64) {
	t.Helper()
	least = usedMemory(t, rdb)
	for still := 0; still < 10; still++ {
		time.Sleep(100 * time.Millisecond)
		if used := usedMemory(t, rdb); used < least-1024 {
			least, still = used, 0
		}
	}
	return least
}

func usedMemory(t *testing.T, rdb *redis.Client) int64 {
	t.Helper()
	info := rdb.Info(context.Background(), "memory").Val()
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no used_memory in %q", info)
	return 0
}

// docs/operations.md names tests and fields that there are.
func TestOperationsNamesWhatThereIs(t *testing.T) {
	text := readFile(t, "docs/operations.md")
	tests := sourceOfTests(t)
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(text, -1)
	for _, m := range named {
		if !strings.Contains(tests, "func "+m[1]) { // or several that begin so
			t.Errorf("there is no test %s", m[1])
		}
	}
	if len(named) < 20 {
		t.Errorf("%d tests are named", len(named))
	}
	_, table, _ := strings.Cut(text, "| `Stats` | alert when")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile("`(?:Total\\.)?([A-Z][A-Za-z]+)`").FindAllStringSubmatch(table, -1) {
		if !isStat(m[1]) && !isOption(m[1]) {
			t.Errorf("Stats has no field %s", m[1])
		}
	}
	told := map[string]bool{"Limiters": true, "Total": true, "Calls": true, "BatchSize": true, "StoreEvents": true, "MaxKeys": true}
	for f := range reflect.TypeFor[Stats]().Fields() {
		if !told[f.Name] && !strings.Contains(table, "`"+f.Name+"`") {
			t.Errorf("nobody watches Stats.%s", f.Name)
		}
	}
}

// Every number is explained: what it says, what is normal, what else.
func TestOperationsExplainsEveryNumber(t *testing.T) {
	_, text, _ := strings.Cut(readFile(t, "docs/operations.md"), "## What the numbers mean")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := 0
	explained := map[string]bool{"Limiters": true, "Total": true}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `") || len(cells) != 6 {
			continue
		}
		rows++
		for _, m := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			if explained[m[1]] || m[1] != "Stats" && m[1] != "LimiterStats" && !isStat(m[1]) {
				t.Errorf("%s is there twice, or not at all", m[1])
			}
			explained[m[1]] = m[1] != "Stats" && m[1] != "LimiterStats"
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Stats](), reflect.TypeFor[LimiterStats]()} {
		for f := range of.Fields() {
			if !explained[f.Name] {
				t.Errorf("%s.%s is not explained", of.Name(), f.Name)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows", rows)
	}
}

func isStat(name string) bool {
	_, node := reflect.TypeFor[Stats]().FieldByName(name)
	_, limiter := reflect.TypeFor[LimiterStats]().FieldByName(name)
	return node || limiter
}

// isOption reports whether the advice is about an option, ours or the client's.
func isOption(name string) bool {
	_, option := reflect.TypeFor[Options]().FieldByName(name)
	_, limiter := reflect.TypeFor[LimiterOptions]().FieldByName(name)
	_, client := reflect.TypeFor[redis.Options]().FieldByName(name)
	return option || limiter || client || name == Exact.String()
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sourceOfTests is the text of all test files of the core and of chaos.
func sourceOfTests(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "internal/*/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			all.WriteString(readFile(t, name))
		}
	}
	return all.String()
}
