// Command httpserver is an HTTP API behind limits: by API key, by cost, and a
// login that fails closed. It prints curl lines that show them. A second port, which
// only operators should reach, has a page to look at and metrics for Prometheus.
//
// It needs nothing installed: without REDIS_URL the Redis in it is embedded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hybridlimit/hybrid/examples/internal/demo"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where clients are served")
	admin := flag.String("admin", "127.0.0.1:9090", "where operators are served")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *addr, *admin); err != nil {
		fmt.Fprintln(os.Stderr, "httpserver:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. Then requests under way are answered, and what the
// node holds on lease goes back to Redis.
func run(ctx context.Context, out io.Writer, addr, admin string) error {
	node, stop, err := demo.OpenNode("httpserver")
	if err != nil {
		return err
	}
	defer stop()
	api, err := newHandler(node)
	if err != nil {
		return err
	}
	operators, err := newAdmin(node)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	private, err := net.Listen("tcp", admin)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Listening on http://%s. Try, in another terminal:\n\n", listener.Addr())
	printTries(out, "http://"+listener.Addr().String())
	fmt.Fprintf(out, "For operators: http://%s/debug/hybrid and http://%[1]s/metrics\n", private.Addr())
	return serveAll(ctx, map[net.Listener]http.Handler{listener: api, private: operators})
}

// serveAll serves until ctx ends or one of the servers fails, and ends all of them.
func serveAll(ctx context.Context, handlers map[net.Listener]http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(handlers))
	for listener, handler := range handlers {
		go func() {
			defer cancel()
			ended <- serve(ctx, &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}, listener)
		}()
	}
	var all error
	for range handlers {
		all = errors.Join(all, <-ended)
	}
	return all
}

func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return err
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
