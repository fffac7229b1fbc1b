package hybridprom

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// However many keys there are, the series stay the same, and none says a key.
func TestLabels(t *testing.T) {
	many := 100_000
	if raceDetector {
		many /= 10
	}
	const mark = "user-a9f3-"
	node := newNode(t, redistest.Start(t).Addr)
	api := newLimiter(t, node, "api", hybrid.PerDay(100), nil)
	metrics := fresh(t, node)

	allow(t, api, mark+"0", 1)
	one := slices.Sorted(maps.Keys(metrics.scrape()))
	const callers = 64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := caller; i < many; i += callers {
				allow(t, api, fmt.Sprint(mark, i), 1)
			}
		})
	}
	wg.Wait()

	s := metrics.scrape()
	s.want(t, `hybrid_keys{limiter="api"}`, float64(many))
	if all := slices.Sorted(maps.Keys(s)); !slices.Equal(all, one) {
		t.Errorf("%d series with %d keys, %d with one:\n%s", len(all), many, len(one), strings.Join(all, "\n"))
	}
	if text := metrics.text(); strings.Contains(text, mark) {
		t.Errorf("a key is in the scrape:\n%s", text)
	}
}
