package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridrls"
)

// service is all that runs.
type service struct {
	config config
	logger *slog.Logger

	node       *hybrid.Node
	rls        *hybridrls.Server
	grpc       *grpc.Server
	health     *health.Server
	listener   net.Listener
	admin      admin
	closeStore func()
}

// open makes everything and serves nothing yet.
func open(c config, rules *hybridrls.Rules, redisURL string, logger *slog.Logger) (*service, error) {
	client, closeStore, err := openRedis(redisURL, logger)
	if err != nil {
		return nil, err
	}
	s := &service{config: c, logger: logger, closeStore: closeStore}
	if s.node, err = hybrid.New(client, &hybrid.Options{Prefix: c.prefix, StoreTimeout: c.storeTimeout(redisURL), Servers: c.servers, Logger: logger}); err != nil {
		closeStore()
		return nil, err
	}
	if s.rls, err = hybridrls.New(s.node, rules, &hybridrls.Options{Headers: c.headers, Logger: logger}); err == nil {
		err = s.listen()
	}
	if err != nil {
		_ = s.node.Close()
		closeStore()
		return nil, err
	}
	s.grpc, s.health = newGRPC(s.rls)
	return s, nil
}

// listen takes all addresses or none.
func (s *service) listen() (err error) {
	if s.listener, err = net.Listen("tcp", s.config.listen); err != nil {
		return fmt.Errorf("flag -listen: %w", err)
	}
	if s.admin, err = openAdmin(s.config.admin, s.rls); err != nil {
		_ = s.listener.Close()
	}
	return err
}

// newGRPC is a server with the service, the health service and reflection. Gateways
// keep connections open for long, and may ping them as often as they like.
func newGRPC(rls *hybridrls.Server) (*grpc.Server, *health.Server) {
	g := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	rls.Register(g)
	h := health.NewServer()
	h.SetServingStatus(rlsv3.RateLimitService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(g, h)
	reflection.Register(g)
	return g, h
}

// serve answers until ctx ends. Then it says that it is not healthy, answers what
// is under way, and gives back what the node holds. Operators see all but the last.
func (s *service) serve(ctx context.Context) error {
	s.logger.Info("hybridrls: serving", "address", s.listener.Addr().String(), "rules", s.rls.Stats().Rules)
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { s.rls.Watch(watching, s.config.file, 0) })
	s.admin.serve(s.logger)
	ended := make(chan error, 1)
	go func() { ended <- s.grpc.Serve(s.listener) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.health.Shutdown()
		s.drain()
		err = <-ended
	}
	stop()
	watcher.Wait()
	s.admin.stop()
	s.close()
	return err
}

// drain lets requests under way end, within the time for it.
func (s *service) drain() {
	late := time.AfterFunc(s.config.drain, s.grpc.Stop)
	defer late.Stop()
	s.grpc.GracefulStop()
}

// close gives back what the node holds. What Redis does not take lapses.
func (s *service) close() {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.drain)
	defer cancel()
	if err := s.node.Shutdown(ctx); err != nil {
		s.logger.Warn("hybridrls: not all could be given back to Redis; it lapses within two minutes")
	}
	s.closeStore()
	st := s.rls.Stats()
	s.logger.Info("hybridrls: ended", "requests", st.Requests, "allowed", st.Allowed, "denied", st.Denied, "errors", st.Errors)
}
