// Command quickstart shows one limit shared by four servers: whichever server
// a client asks, together they let through 100 requests a minute.
//
// It needs nothing installed: the Redis in it is embedded.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

const (
	servers  = 4
	requests = 400
	length   = 3 * time.Second // the requests are spread evenly over it
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// server is one process of your fleet: a Redis client, a node, its limiters.
type server struct {
	client *redis.Client
	node   *hybrid.Node
	api    *hybrid.Limiter

	offered, admitted, denied int
}

func startServer(redisAddr string) (*server, error) {
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	node, err := hybrid.New(client, nil)
	if err != nil {
		return nil, err
	}
	// 100 per minute and key. Its burst is 100 too: a key that was idle for a
	// minute may send them all at once.
	api, err := node.Limiter("api", hybrid.PerMinute(100), nil)
	if err != nil {
		return nil, err
	}
	return &server{client: client, node: node, api: api}, nil
}

func (s *server) stop() {
	s.node.Close() // returns what it holds on lease
	s.client.Close()
}

func run(out io.Writer) error {
	store, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer store.Close()
	store.ClockTTL(true) // keys expire as they do in a real Redis

	fleet := make([]*server, servers)
	for i := range fleet {
		if fleet[i], err = startServer(store.Addr()); err != nil {
			return err
		}
		defer fleet[i].stop()
	}

	took, denial, err := send(fleet, progress(out))
	if err != nil {
		return err
	}
	return report(out, fleet, took, denial)
}

// send is a client that asks the servers in turn. It returns how long that
// took and what a denial looked like.
func send(fleet []*server, progress func(done int)) (took time.Duration, denial hybrid.Result, err error) {
	ctx := context.Background()
	start := time.Now()
	for i := range requests {
		time.Sleep(time.Until(start.Add(length * time.Duration(i) / requests)))
		s := fleet[i%len(fleet)]
		s.offered++
		res, err := s.api.Allow(ctx, "customer-42")
		if err != nil {
			return 0, denial, err // misuse, never Redis: see FailurePolicy
		}
		if res.Allowed {
			s.admitted++
		} else {
			s.denied++
			denial = res
		}
		progress(i + 1)
	}
	return time.Since(start), denial, nil
}

// report prints what happened, and fails if more was admitted than promised.
func report(out io.Writer, fleet []*server, took time.Duration, denial hybrid.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "server\toffered\tadmitted\tdenied\tRedis operations\t")
	var all server
	var operations uint64
	for i, s := range fleet {
		ops := s.node.Stats().Total.Operations
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t\n", i+1, s.offered, s.admitted, s.denied, ops)
		all.offered += s.offered
		all.admitted += s.admitted
		all.denied += s.denied
		operations += ops
	}
	fmt.Fprintf(w, "total\t%d\t%d\t%d\t%d\t\n", all.offered, all.admitted, all.denied, operations)
	if err := w.Flush(); err != nil {
		return err
	}

	// Burst and refill, and the 10 % that hybrid.Balanced may add on top.
	limit := fleet[0].api.Limit("customer-42")
	central := float64(limit.Burst()) + float64(limit.Count())*took.Minutes()
	bound := central * (1 + hybrid.Balanced.Over())
	fmt.Fprintf(out, "\nlimit             %v, over %.1f s\n", limit, took.Seconds())
	fmt.Fprintf(out, "one perfect node  %.0f admitted\n", central)
	fmt.Fprintf(out, "bound             %.0f admitted\n", bound)
	fmt.Fprintf(out, "Redis operations  %.2f per request\n", float64(operations)/float64(all.offered))
	if all.denied > 0 {
		fmt.Fprintf(out, "a denial          retry after %v, decided by %v\n", denial.RetryAfter, denial.Path)
	}
	if float64(all.admitted) > bound {
		return fmt.Errorf("bound broken: %d admitted, at most %.0f allowed", all.admitted, bound)
	}
	return nil
}
