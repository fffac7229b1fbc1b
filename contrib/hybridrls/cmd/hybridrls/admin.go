package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hybridlimit/hybrid/contrib/hybridprom"
	"github.com/hybridlimit/hybrid/contrib/hybridrls"
	"github.com/hybridlimit/hybrid/debugui"
)

// admin is what operators see, on a port of its own. It asks nobody who they are: it
// is for a port that clients do not reach. The zero value serves nothing.
type admin struct {
	listener net.Listener
	server   *http.Server
	ended    chan struct{}
}

// openAdmin listens, if there is an address, and serves nothing yet.
func openAdmin(addr string, rls *hybridrls.Server) (admin, error) {
	if addr == "" {
		return admin{}, nil
	}
	handler, err := adminHandler(rls)
	if err != nil {
		return admin{}, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return admin{}, fmt.Errorf("flag -admin: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
	return admin{listener: listener, server: server, ended: make(chan struct{})}, nil
}

// adminHandler has the page of the node, and metrics of it and of the service.
func adminHandler(rls *hybridrls.Server) (http.Handler, error) {
	page, err := debugui.Handler(rls.Node(), nil)
	if err != nil {
		return nil, err
	}
	collector, err := hybridprom.New(rls.Node(), nil)
	if err != nil {
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{collector, serviceMetrics{rls}} {
		if err := metrics.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /debug/hybrid", page)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux, nil
}

// serve answers in the background. If it cannot, gateways are answered all the same.
func (a *admin) serve(logger *slog.Logger) {
	if a.server == nil {
		return
	}
	base := "http://" + a.listener.Addr().String()
	logger.Info("hybridrls: for operators", "page", base+"/debug/hybrid", "metrics", base+"/metrics")
	go func() {
		defer close(a.ended)
		if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("hybridrls: the page and the metrics are no longer served", "error", err)
		}
	}()
}

// stop ends what serve began. A scrape that is under way has a second to end.
func (a *admin) stop() {
	if a.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if a.server.Shutdown(ctx) != nil {
		_ = a.server.Close()
	}
	<-a.ended
}
