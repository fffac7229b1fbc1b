package hybridrls_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridrls"
)

// The service inside of a program of one's own: here with an embedded Redis, and a
// client that asks what a gateway would.
func Example() {
	store, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	rdb := redis.NewClient(&redis.Options{Addr: store.Addr(), ContextTimeoutEnabled: true})
	defer rdb.Close()
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second}) // what it prints does not depend on how busy the machine is
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	rules, err := hybridrls.Parse([]byte(`
domain: edge
rules:
- name: per-key
  match:
  - key: api_key
  limit: 2/h
  accuracy: exact
`))
	if err != nil {
		log.Fatal(err)
	}
	service, err := hybridrls.New(node, rules, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	service.Register(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	gateway := rlsv3.NewRateLimitServiceClient(conn)
	for range 3 {
		resp, err := gateway.ShouldRateLimit(context.Background(), &rlsv3.RateLimitRequest{
			Domain: "edge",
			Descriptors: []*commonv3.RateLimitDescriptor{{
				Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "api_key", Value: "k1"}},
			}},
		})
		if err != nil {
			log.Fatal(err)
		}
		st := resp.Statuses[0]
		fmt.Println(resp.OverallCode, st.CurrentLimit.Name, st.LimitRemaining)
	}
	// Output:
	// OK per-key 1
	// OK per-key 0
	// OVER_LIMIT per-key 0
}
