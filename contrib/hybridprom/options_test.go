package hybridprom

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hybridlimit/hybrid"
)

func TestInvalidOptions(t *testing.T) {
	node := newNode(t, nowhere)
	for name, c := range map[string]struct {
		opts *Options
		says string
	}{
		"a namespace with a dash":     {&Options{Namespace: "my-app"}, `hybridprom.Options.Namespace: "my-app", allowed letters, digits`},
		"a namespace with a digit":    {&Options{Namespace: "1app"}, `Options.Namespace: "1app"`},
		"a negative interval":         {&Options{MinInterval: -1}, "Options.MinInterval: -1ns, allowed 1ms to 1m"},
		"too short an interval":       {&Options{MinInterval: time.Microsecond}, "Options.MinInterval: 1µs"},
		"too long an interval":        {&Options{MinInterval: time.Hour}, "Options.MinInterval: 1h0m0s"},
		"a label with a dash":         {&Options{ConstLabels: prometheus.Labels{"a-b": ""}}, `Options.ConstLabels: the name "a-b", allowed names of letters`},
		"a label without a name":      {&Options{ConstLabels: prometheus.Labels{"": "x"}}, `Options.ConstLabels: the name ""`},
		"a label of Prometheus's own": {&Options{ConstLabels: prometheus.Labels{"__name__": "x"}}, `Options.ConstLabels: the name "__name__"`},
		"a label of ours":             {&Options{ConstLabels: prometheus.Labels{"path": "/"}}, `Options.ConstLabels: the name "path", allowed names other than accuracy, cause, le, limiter, on_failure, path, result, shadow`},
		"a label of histograms":       {&Options{ConstLabels: prometheus.Labels{"le": "1"}}, `Options.ConstLabels: the name "le"`},
		"a value that is no UTF-8":    {&Options{ConstLabels: prometheus.Labels{"store": "\xff"}}, `Options.ConstLabels: "\xff" of store, allowed values in UTF-8`},
	} {
		collector, err := New(node, c.opts)
		if collector != nil || !errors.Is(err, hybrid.ErrInvalidOption) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want …%s…", name, err, c.says)
		}
	}
	if _, err := New(nil, nil); !errors.Is(err, hybrid.ErrInvalidOption) || !strings.Contains(err.Error(), "hybridprom.node: nil") {
		t.Errorf("no node: %v", err)
	}
}
