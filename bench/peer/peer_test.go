package peer

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/bench/redisd"
)

// small is a limit that is used up at once and is whole again soon.
var small = Limit{Count: 10, Period: time.Second}

func setUp(t *testing.T) Setup {
	t.Helper()
	s, err := redisd.Start()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("HYBRID_REQUIRE_REDIS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return Setup{Limit: small, Redis: s.Addr, Keys: 100, Servers: 1}
}

func open(t *testing.T, k Kind, s Setup) Limiter {
	t.Helper()
	l, err := k.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

// admitted asks so many times.
func admitted(t *testing.T, l Limiter, key string, requests int) (n int) {
	t.Helper()
	for range requests {
		ok, err := l.Allow(key)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			n++
		}
	}
	return n
}

// most is what may be admitted since begin: what a bucket does, and one limit
// more for those that count in windows or whole seconds, if one begins meanwhile.
func most(begin time.Time) int {
	return int(math.Ceil(small.Most(time.Since(begin)))) + int(small.Count)
}

// Every contestant does what it is compared for: it admits the burst, denies
// what is beyond it, knows keys apart, and admits again later.
func TestEveryContestantLimits(t *testing.T) {
	setup := setUp(t)
	limiters := make(map[string]Limiter)
	for _, k := range All() {
		s := setup
		s.Prefix = strings.Map(letters, k.Name) + ":"
		l := open(t, k, s)
		limiters[k.Name] = l
		t.Run(k.Name, func(t *testing.T) { usesUp(t, k, l) })
	}
	time.Sleep(2*small.Period + small.Period/10) // a sliding window forgets after two
	for _, k := range All() {
		want := 1
		if k.Name == bareMap.Name {
			want = 0
		}
		if got := admitted(t, limiters[k.Name], "k", 1); got != want {
			t.Errorf("%s: after two periods %d of 1 are admitted, want %d", k.Name, got, want)
		}
	}
}

func usesUp(t *testing.T, k Kind, l Limiter) {
	begin, burst := time.Now(), int(small.Count)
	if got := admitted(t, l, "k", burst); got != burst {
		t.Fatalf("admitted %d of a burst of %d", got, burst)
	}
	if k.Name == barePing.Name {
		return
	}
	if got, most := burst+admitted(t, l, "k", 9*burst), most(begin); got > most {
		t.Errorf("admitted %d of %d, want at most %d", got, 10*burst, most)
	}
	if got := admitted(t, l, "another key", 1); got != 1 && !k.Place.Has(OneKey) {
		t.Error("a key is denied for what another one used")
	}
}

// letters keeps names in Redis simple.
func letters(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return -1
}

// Those with a Redis share one limit over their instances, the others do not.
func TestInstancesShareOnlyThroughRedis(t *testing.T) {
	setup := setUp(t)
	setup.Servers = 2
	for _, k := range All() {
		if k.Floor || k.Place.Has(OneKey) {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			s := setup
			s.Prefix = strings.Map(letters, k.Name) + ":"
			one, other := open(t, k, s), open(t, k, s)
			begin, burst := time.Now(), int(small.Count)
			first := admitted(t, one, "k", 4*burst)
			second := admitted(t, other, "k", 4*burst)
			if most := most(begin); k.Place.Has(Redis) && first+second > most {
				t.Errorf("two instances admitted %d and %d, want at most %d", first, second, most)
			}
			if k.Place == Memory && (first < burst || second < burst) {
				t.Errorf("two instances admitted %d and %d, want a burst of %d each", first, second, burst)
			}
		})
	}
}

func TestNamesAreDifferentAndDescribed(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range All() {
		if seen[k.Name] {
			t.Errorf("two contestants are called %q", k.Name)
		}
		seen[k.Name] = true
		if k.Keeps == "" || k.Rule == "" || k.Place == 0 {
			t.Errorf("%s: %+v: something is missing", k.Name, k)
		}
	}
}
