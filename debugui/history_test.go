package debugui

import (
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/hybridlimit/hybrid"
)

// What is kept for viewers goes when they have gone, the keys that were listed too.
func TestNothingIsKeptForNobody(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil).(*handler)
		api := w.limiter("api", hybrid.PerMinute(60), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
		for range 200 {
			use(t, api, "customer-42", 10)
			reported(t, h)
			time.Sleep(time.Second)
		}
		id := reported(t, h).Denied[0].ID
		kept := func() (looks int, found, report bool) {
			h.sampler.mu.Lock()
			defer h.sampler.mu.Unlock()
			_, found = h.keys.find(id)
			return len(h.sampler.kept), found, h.sampler.latest != nil
		}
		time.Sleep(keptFor - time.Second)
		if n, found, report := kept(); n != 121 || !found || !report {
			t.Errorf("before the time is over %d looks are kept, the key: %t, the report: %t", n, found, report)
		}
		reported(t, h) // somebody comes back in time
		time.Sleep(keptFor - time.Second)
		if n, found, _ := kept(); n == 0 || !found {
			t.Errorf("a look was no reason to keep anything: %d looks, the key: %t", n, found)
		}
		time.Sleep(2 * time.Second)
		if n, found, report := kept(); n != 0 || found || report {
			t.Errorf("nobody looks, and %d looks are kept, the key: %t, the report: %t", n, found, report)
		}
		if r := reported(t, h); r.Limiters[0].Admitted.Text != none || len(r.Denied) != 0 {
			t.Errorf("whoever comes later begins with %s admitted, %+v", r.Limiters[0].Admitted.Text, r.Denied)
		}
		time.Sleep(keptFor + time.Second)
		if n, _, _ := kept(); n != 0 {
			t.Errorf("the second time %d looks are kept", n)
		}
	})
}

// A page keeps no limiter that its program has closed.
func TestClosedLimiterIsFree(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		w.limiter("other", hybrid.PerMinute(60), nil)
		gone := func() weak.Pointer[hybrid.Limiter] {
			one := w.limiter("short-lived", hybrid.PerMinute(60), nil)
			use(t, one, "ann", 10)
			reported(t, h)
			if err := one.Close(); err != nil {
				t.Fatal(err)
			}
			return weak.Make(one)
		}()
		time.Sleep(time.Second)
		reported(t, h)
		for range 10 {
			runtime.GC()
		}
		if gone.Value() != nil {
			t.Error("a second after it was closed it is still there")
		}
		runtime.KeepAlive(h)
	})
}

// many is a node of many limiters, of which the last ten decide.
type many struct {
	script
	decided uint64
}

func (m *many) look() sample {
	for i := range 10 {
		m.stats.Limiters[fmt.Sprintf("limiter-%05d", len(m.limiters)-1-i)] = hybrid.LimiterStats{SliceTokens: m.decided, Fleet: 1}
	}
	s := m.script.look()
	s.limiters = append([]limiterInfo(nil), s.limiters...)
	return s
}

func newMany(limiters int) *many {
	m := &many{}
	m.stats.Limiters = map[string]hybrid.LimiterStats{}
	for i := range limiters {
		name := fmt.Sprintf("limiter-%05d", i)
		m.limiters = append(m.limiters, limiterInfo{name: name, limit: hybrid.PerSecond(10)})
		m.stats.Limiters[name] = hybrid.LimiterStats{Fleet: 1}
	}
	return m
}

// A page that is open on a node of very many limiters costs what some looks take, not two
// minutes of them. Of 10,000 limiters 121 whole looks take 336 MB, and these 20 MB
// (2026-11-30, go1.26.8, linux/amd64); of a tenth of them 34 MB.
func TestHistoryOfManyLimitersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMany(1000)
		var h history
		before := heap()
		for range 121 {
			m.decided += 100
			h = h.with(m.look(), time.Now().Add(-keptFor))
			time.Sleep(time.Second)
		}
		took := int64(heap()-before) >> 20
		t.Logf("%d looks at %d limiters take %d MB", len(h), len(m.limiters), took)
		if took > 12 {
			t.Errorf("%d looks at %d limiters take %d MB", len(h), len(m.limiters), took)
		}
		busy := "limiter-00999"
		if n := len(chartOf(&limiterInfo{name: busy}, h).Ages); n != 120 {
			t.Errorf("a busy limiter has a chart of %d seconds", n)
		}
		if w := h.of(busy, recentOf); w.seconds() != 60 || w.of(busy, decided) != 6000 {
			t.Errorf("it decided %d in %v s", w.of(busy, decided), w.seconds())
		}
		if w := h.of("limiter-00500", recentOf); w.seconds() > 10 || w.of("limiter-00500", decided) != 0 {
			t.Errorf("an idle one decided %d in %v s", w.of("limiter-00500", decided), w.seconds())
		}
		if w := h.over(recentOf); w.seconds() != 60 || w.all(decided) != 60_000 {
			t.Errorf("all decided %d in %v s", w.all(decided), w.seconds())
		}
		runtime.KeepAlive(h)
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Of a limiter that begins to decide, what it did before is not made up.
func TestLimiterThatBeginsToDecideHasAChart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMany(200)
		late := "limiter-00150"
		m.stats.Limiters[late] = hybrid.LimiterStats{SliceTokens: 1e6, Fleet: 1} // long ago
		h := newHandler(nil, Options{}, func(history) sample { return m.look() })
		reported(t, h)
		var r report
		for i := range 40 {
			time.Sleep(time.Second)
			m.decided += 100
			if i >= 30 {
				st := m.stats.Limiters[late]
				st.SliceTokens += 5000
				m.stats.Limiters[late] = st
			}
			r = reported(t, h)
		}
		l := find(t, r.Limiters, late, func(l limiterReport) bool { return l.Name == late })
		if l.Chart == nil || len(l.Chart.Ages) < 10 || l.Chart.Up.Value != 5000 || l.Admitted.Value != 5000 {
			t.Errorf("%s admitted, the chart is %+v", l.Admitted.Text, l.Chart)
		}
		if n := r.Node.Admitted.Value; n != 6000 {
			t.Errorf("%v admitted a second, want 6000", n)
		}
		for i := range h.sampler.kept {
			if n := len(h.sampler.kept[i].limiters); n > mostKept && h.sampler.kept[i].thinned {
				t.Errorf("of a look that was thinned %d limiters are kept", n)
			}
		}
	})
}

// Whatever is counted of limiters is added up over all of them.
func TestEveryCounterIsSummed(t *testing.T) {
	before, after := hybrid.LimiterStats{}, hybrid.LimiterStats{}
	want := 0
	for i, v := 0, reflect.ValueOf(&after).Elem(); i < v.NumField(); i++ {
		if f := v.Field(i); f.Kind() == reflect.Uint64 {
			f.SetUint(uint64(7 + i))
			want++
		}
	}
	if len(summable) != want {
		t.Errorf("%d counters are summed, of %d", len(summable), want)
	}
	at := func(st hybrid.LimiterStats) sample {
		return sample{at: noon, limiters: []limiterInfo{{name: "api"}}, stats: hybrid.Stats{Limiters: map[string]hybrid.LimiterStats{"api": st}}}
	}
	h := history{}.with(at(before), noon).with(at(after), noon)
	if got := h.last().sum; got != after {
		t.Errorf("the sum is %+v, want %+v", got, after)
	}
}

// Of very many limiters those are asked who they deny that deny most: each answer takes a
// look at every key.
func TestDeniedKeysOfManyLimitersAreFound(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		for i := range 40 {
			w.limiter(fmt.Sprintf("limiter-%02d", i), hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
		}
		loud := w.node.Limiters()[39]
		for range 5 {
			use(t, loud, "customer-42", 50)
			time.Sleep(time.Second)
			reported(t, h)
		}
		if d := reported(t, h).Denied; len(d) != 1 || d[0].Limiter != "limiter-39" {
			t.Errorf("denied most: %+v", d)
		}
		s := lookAt(w.node, nil)
		if got := loudest(&s, nil, 1); !got["limiter-39"] || len(got) != 1 {
			t.Errorf("the loudest is %v", got)
		}
	})
}

// Handlers that answer nothing but wrong requests keep nothing, and start nothing.
func TestNoLookStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := (&script{}).handler()
		send(h, http.MethodGet, "/")
		send(h, http.MethodHead, "/?format=json")
		if h.sampler.idle != nil {
			t.Error("a timer runs for nobody")
		}
	})
}
