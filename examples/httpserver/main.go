// Command httpserver is an HTTP API behind limits: by API key, by cost, and a
// login that fails closed. It prints curl lines that show them.
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

	"github.com/hybridlimit/hybrid"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "httpserver:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. Then requests under way are answered, and what the
// node holds on lease goes back to Redis.
func run(ctx context.Context, out io.Writer, addr string) error {
	client, kind, closeStore, err := openRedis()
	if err != nil {
		return err
	}
	defer closeStore()
	node, err := hybrid.New(client, nil)
	if err != nil {
		return err
	}
	defer node.Close()
	handler, err := newHandler(node)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Listening on http://%s with %s. Try, in another terminal:\n\n", listener.Addr(), kind)
	printTries(out, "http://"+listener.Addr().String())
	return serve(ctx, &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}, listener)
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
