package main

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// runNode is one server of the fleet, from its job to its result. It ends
// early when orders ends: then whoever gave them is gone.
func runNode(ctx context.Context, orders io.Reader, reports io.Writer) error {
	in, out := gob.NewDecoder(orders), gob.NewEncoder(reports)
	var j job
	if err := in.Decode(&j); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	err := serve(ctx, j, in, out)
	if err != nil {
		_ = out.Encode(report{Failed: err.Error()}) // nobody may be left to read it
	}
	return err
}

func serve(ctx context.Context, j job, in *gob.Decoder, out *gob.Encoder) error {
	opts, err := redis.ParseURL(j.Redis)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	node, limiter, err := newNode(rdb, j)
	if err != nil {
		return err
	}
	defer node.Close()

	if err := out.Encode(report{Ready: true}); err != nil {
		return err
	}
	var s start
	if err := in.Decode(&s); err != nil {
		return fmt.Errorf("waiting for the start: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_ = in.Decode(new(start)) // returns when the pipe ends
		stop()
	}()

	t := newTraffic(j, limiter)
	told := make(chan struct{})
	go func() {
		defer close(told)
		t.tell(out)
	}()
	err = t.run(ctx, s.At)
	<-told
	if err != nil {
		return err
	}
	stats := node.Stats()
	return out.Encode(report{Result: &result{
		Requests: t.requests(), Stats: stats.Total, Calls: stats.Calls, Downs: stats.StoreDowns,
	}})
}

func newNode(rdb *redis.Client, j job) (*hybrid.Node, *hybrid.Limiter, error) {
	node, err := hybrid.New(rdb, &hybrid.Options{
		Prefix:       j.Prefix,
		NodeID:       fmt.Sprintf("node-%d", j.Index+1),
		Servers:      j.Config.Nodes,
		StoreTimeout: j.Config.Timeout,
		Logger:       slog.New(slog.DiscardHandler), // the verdict counts what it would say
	})
	if err != nil {
		return nil, nil, err
	}
	limiter, err := node.Limiter("fleet", j.Config.Limit.limit(), &hybrid.LimiterOptions{
		Accuracy: hybrid.Accuracy(j.Config.Accuracy),
	})
	if err != nil {
		node.Close()
		return nil, nil, err
	}
	return node, limiter, nil
}

// tellEvery is the time between two reports of progress.
const tellEvery = 500 * time.Millisecond
