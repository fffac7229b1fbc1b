package hybridotel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/hybridlimit/hybrid"
)

// Each request is in the numbers once, where its Result says that it was decided.
func TestDecisionsAreCountedWhereTheyAreMade(t *testing.T) {
	inBubble(t, func(w *world) {
		r, _ := register(t, w.node)
		api := w.limiter("api", hybrid.PerMinute(600), nil)
		time.Sleep(6 * time.Second) // until floors are open
		want := map[string]float64{"slice.tokens{limiter=api}": 0}
		for _, path := range []string{"floor", "exact", "fallback"} {
			want["requests{limiter=api,path="+path+",result=allowed}"] = 0
		}
		for _, path := range []string{"exact", "memo", "fallback"} {
			want["requests{limiter=api,path="+path+",result=denied}"] = 0
		}
		decide := func(results []hybrid.Result) {
			for _, res := range results {
				point := fmt.Sprintf("requests{limiter=api,path=%v,result=%v}", res.Path, map[bool]string{true: "allowed", false: "denied"}[res.Allowed])
				if res.Path == hybrid.PathSlice {
					point = "slice.tokens{limiter=api}"
				}
				want[point]++
			}
		}
		decide(w.ask(api, "busy", 2000, 2*time.Millisecond))
		decide(w.ask(api, "calm", 20, time.Second))
		never, err := api.AllowN(context.Background(), "calm", 601)
		if err != nil {
			t.Fatal(err)
		}
		decide([]hybrid.Result{never})
		w.breakRedis()
		decide(w.ask(api, "new", 2000, 5*time.Millisecond))
		got := r.read()
		for point, n := range want {
			got.want(point, n)
			if n == 0 {
				t.Errorf("the story has no %s", point)
			}
		}
		if all := got.sum("requests") + got.sum("slice.tokens"); all != 4021 {
			t.Errorf("%v requests in all, want 4021", all)
		}
	})
}

// Names and units are as the semantic conventions want them, and the package comment
// has them all.
func TestInstrumentsAreNamedAndDescribed(t *testing.T) {
	inBubble(t, func(w *world) {
		r, _ := register(t, w.node)
		api := w.limiter("api", hybrid.PerMinute(10), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		w.ask(api, "k", 20, 0)
		w.breakRedis() // so that there is a failure, too
		w.ask(api, "new", 20, 100*time.Millisecond)
		comment, err := os.ReadFile("doc.go")
		if err != nil {
			t.Fatal(err)
		}
		name := regexp.MustCompile(`^hybrid\.rate_limiting(\.[a-z]+(_[a-z]+)*)+$`)
		unit := regexp.MustCompile(`^(1|s|\{[a-z]+\})$`)
		got := r.read().metrics
		for _, m := range got {
			if !name.MatchString(m.Name) || !unit.MatchString(m.Unit) || !strings.HasSuffix(m.Description, ".") {
				t.Errorf("%s in %q: %q", m.Name, m.Unit, m.Description)
			}
			listed := regexp.MustCompile(`(?m)^//\t` + regexp.QuoteMeta(strings.TrimPrefix(m.Name, prefix)) + ` +` + regexp.QuoteMeta(m.Unit) + ` `)
			if !listed.Match(comment) {
				t.Errorf("the package comment does not list %s in %s", m.Name, m.Unit)
			}
			checkKind(t, m)
		}
		for field, point := range notInTables {
			if name, _, _ := strings.Cut(point, "{"); got[prefix+name].Name == "" {
				t.Errorf("%s: there is no instrument %s", field, name)
			}
		}
		if listed := regexp.MustCompile(`(?m)^//\t[a-z]`).FindAll(comment, -1); len(listed) != len(got) {
			t.Errorf("the package comment lists %d instruments, there are %d: %v", len(listed), len(got), slices.Sorted(maps.Keys(got)))
		}
	})
}

// checkKind fails the test unless what counts is a counter and nothing else is.
func checkKind(t *testing.T, m metricdata.Metrics) {
	t.Helper()
	sum, isSum := m.Data.(metricdata.Sum[int64])
	switch strings.TrimPrefix(m.Name, prefix) {
	case "key.count", "key.limit", "waiter.count", "store.down":
		if !isSum || sum.IsMonotonic {
			t.Errorf("%s may fall, and is a %T", m.Name, m.Data)
		}
	case "fleet.size", "overshoot", "store.sync_lag", "store.call.duration", "store.call.operations":
		if isSum {
			t.Errorf("%s cannot be summed up, and is a %T", m.Name, m.Data)
		}
	default:
		if !isSum || !sum.IsMonotonic {
			t.Errorf("%s never falls, and is a %T", m.Name, m.Data)
		}
	}
}

// However many keys there are, the data points stay the same, and none says a key.
func TestKeysAreNowhere(t *testing.T) {
	const many, mark = 100_000, "user-a9f3-"
	inBubble(t, func(w *world) {
		r, _ := register(t, w.node)
		api := w.limiter("api", hybrid.PerMinute(6000), nil)
		time.Sleep(6 * time.Second) // until floors are open: Redis would take long for so many
		w.ask(api, mark+"0", 1, time.Second)
		one := slices.Sorted(maps.Keys(r.read().numbers))
		for i := range many {
			if _, err := api.Allow(context.Background(), fmt.Sprint(mark, i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(fresh)
		got := r.read()
		got.want("key.count{limiter=api}", many)
		if all := slices.Sorted(maps.Keys(got.numbers)); !slices.Equal(all, one) {
			t.Errorf("%d data points with %d keys, %d with one: %v", len(all), many, len(one), all)
		}
		if text := fmt.Sprint(got.metrics); strings.Contains(text, mark) {
			t.Errorf("a key is in the metrics: %s", text)
		}
	})
}

// Two nodes in one process are told apart by the attributes that they are given.
func TestAttributesTellNodesApart(t *testing.T) {
	inBubble(t, func(w *world) {
		provider, readers := newProvider(t, metricdata.CumulativeTemporality)
		other := w.another()
		defer other.Close()
		attrs := []attribute.KeyValue{attribute.String("store", "eu")}
		for _, node := range []*hybrid.Node{w.node, other} {
			if _, err := Register(node, &Options{MeterProvider: provider, Attributes: attrs}); err != nil {
				t.Fatal(err)
			}
			attrs[0] = attribute.String("store", "us") // what was given is the caller's again
		}
		w.limiter("api", hybrid.PerMinute(10), nil)
		got := readers[0].read()
		got.want("key.limit{store=eu}", 1<<20)
		got.want("key.limit{store=us}", 1<<20)
		got.want("key.count{limiter=api,store=eu}", 0)
		if len(got.metrics) == 0 || len(got.histograms) != 0 {
			t.Errorf("histograms of nothing: %v", got.histograms)
		}
	})
}

// A name that is no UTF-8 would make an exporter drop all that it has. One that looks
// like such a name, quoted, is another limiter's.
func TestNamesAreUTF8(t *testing.T) {
	inBubble(t, func(w *world) {
		r, _ := register(t, w.node)
		w.limiter("a\xffb", hybrid.PerMinute(10), nil)
		alike := w.limiter(`"a\xffb"`, hybrid.PerMinute(10), nil)
		if _, err := alike.Allow(context.Background(), "k"); err != nil {
			t.Error(err)
		}
		got := r.read()
		got.want(`key.count{limiter="a\xffb"}`, 0)
		got.want(`key.count{limiter="\"a\\xffb\""}`, 1)
	})
}

// Values of all kinds are taken, if the texts in them are UTF-8; bytes are no text.
func TestAttributesOfAllKinds(t *testing.T) {
	o := &Options{Attributes: []attribute.KeyValue{
		{Key: "empty"}, attribute.Bool("bool", true), attribute.String("ключ", "é"), attribute.StringSlice("stores", []string{"eu", "us"}),
		attribute.ByteSlice("bytes", []byte{0xff}), attribute.Slice("deep", attribute.StringValue("eu"), attribute.IntValue(1)),
		attribute.Map("map", attribute.String("k", "v")),
	}}
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}

// Without options the global provider makes the instruments.
func TestGlobalProvider(t *testing.T) {
	inBubble(t, func(w *world) {
		provider, readers := newProvider(t, metricdata.CumulativeTemporality)
		before := otel.GetMeterProvider()
		otel.SetMeterProvider(provider)
		defer otel.SetMeterProvider(before)
		reg, err := Register(w.node, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := readers[0].read()
		got.want("key.limit", 1<<20)
		if err := reg.Unregister(); err != nil {
			t.Fatal(err)
		}
		if left := readers[0].read(); len(left.numbers) > 0 {
			t.Errorf("unregistered, and still there: %v", left.numbers)
		}
	})
}

func TestMisuse(t *testing.T) {
	inBubble(t, func(w *world) {
		for want, attr := range map[string]attribute.KeyValue{
			"node: nil, allowed":                                     {},
			`Options.Attributes[0]: "", allowed`:                     {},
			`Options.Attributes[0]: "error.type", allowed`:           attribute.String("error.type", "x"),
			`Options.Attributes[0]: "hybrid.rate_limiting.limiter",`: attribute.String("hybrid.rate_limiting.limiter", "x"),

			`Options.Attributes[0]: the key "st\xffore", allowed keys in UTF-8`:    attribute.Int("st\xffore", 1),
			`Options.Attributes[0]: "e\xffu" of "store", allowed values in UTF-8`:  attribute.String("store", "e\xffu"),
			`Options.Attributes[0]: "\xff1" of "stores", allowed values in UTF-8`:  attribute.StringSlice("stores", []string{"eu", "\xff1"}),
			`Options.Attributes[0]: "\xff2" of "deep", allowed values in UTF-8`:    attribute.Slice("deep", attribute.IntValue(1), attribute.StringSliceValue([]string{"\xff2"})),
			`Options.Attributes[0]: "\xff3" of "map", allowed values in UTF-8`:     attribute.Map("map", attribute.String("k", "\xff3")),
			`Options.Attributes[0]: "\xff4" of "its key", allowed values in UTF-8`: attribute.Map("its key", attribute.Int("\xff4", 1)),
		} {
			node := w.node
			if strings.HasPrefix(want, "node") {
				node = nil
			}
			_, err := Register(node, &Options{Attributes: []attribute.KeyValue{attr}})
			if !errors.Is(err, hybrid.ErrInvalidOption) || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
}
