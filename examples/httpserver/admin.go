package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridprom"
	"github.com/hybridlimit/hybrid/debugui"
)

// newAdmin is what operators see. It asks nobody who they are: it is for a port that
// clients do not reach, or for a mux behind a login.
func newAdmin(node *hybrid.Node) (http.Handler, error) {
	page, err := debugui.Handler(node, nil)
	if err != nil {
		return nil, err
	}
	collector, err := hybridprom.New(node, nil)
	if err != nil {
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	if err := metrics.Register(collector); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /debug/hybrid", page)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux, nil
}
