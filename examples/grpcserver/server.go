package main

import (
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridgrpc"
)

// perKey is what each API key may do; perAddress is wide, as many people may share one.
var (
	perKey     = hybrid.Per(3, 1500*time.Millisecond)
	perAddress = hybrid.PerSecond(1000)
)

// serve starts a server of gRPC's own health service, which needs no generated code,
// behind both limits.
func serve(node *hybrid.Node) (address string, shut func(), err error) {
	unary, stream, err := interceptors(node)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(listener) // ends with an error only where the listener breaks: then calls say so
	return listener.Addr().String(), server.Stop, nil
}

// interceptors check a call by its API key and by its address, and charge both or none.
func interceptors(node *hybrid.Node) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor, error) {
	// Strict, so that what is shown is exact; Balanced, the default, asks Redis less often.
	keys, err := node.Limiter("per-key", perKey, &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		return nil, nil, err
	}
	addresses, err := node.Limiter("per-address", perAddress, nil)
	if err != nil {
		return nil, nil, err
	}
	opts := &hybridgrpc.ServerOptions{
		Key:   hybridgrpc.Metadata("x-api-key"),
		NoKey: codes.Unauthenticated,
		More:  []hybridgrpc.Check{{Limiter: addresses, Key: hybridgrpc.PeerIP(nil)}},
	}
	unary, err := hybridgrpc.UnaryServer(keys, opts)
	if err != nil {
		return nil, nil, err
	}
	stream, err := hybridgrpc.StreamServer(keys, opts)
	return unary, stream, err
}
