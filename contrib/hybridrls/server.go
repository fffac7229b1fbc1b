package hybridrls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
)

// Options are the settings of a Server. The zero value of each field means its
// default.
type Options struct {
	// Headers adds x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset and,
	// to denials, retry-after to the gateway's answers. They describe the limit
	// that denied, or the tightest one, in whole seconds. Default: none, since
	// gateways can write headers of their own from the statuses.
	Headers bool

	// Logger is told of rules that change or cannot be read, never of single
	// requests and of no key. Default slog.Default().
	Logger *slog.Logger
}

// Server is a rate limit service. All methods may be called from any goroutine.
type Server struct {
	rlsv3.UnimplementedRateLimitServiceServer

	node     *hybrid.Node
	headers  bool
	logger   *slog.Logger
	counters counters

	applying sync.Mutex // one change at a time; before mu

	// A request holds mu for reading from its match to its last charge: rules change
	// between requests, never under one. It is held for as long as a request may
	// wait for Redis.
	mu     sync.RWMutex
	rules  *ruleset
	sum    [32]byte // of the rules' text
	closed bool
}

// New makes a server with the limiters of the rules on a node, which stays the
// caller's. Options are copied; nil means all defaults.
//
// It fails with hybrid.ErrInvalidOption (no node or no rules), with
// hybrid.ErrDuplicateLimiter, if the node has a limiter of a rule's name, and with
// hybrid.ErrClosed.
func New(node *hybrid.Node, rules *Rules, opts *Options) (*Server, error) {
	if node == nil {
		return nil, fmt.Errorf("%w: node: nil, allowed a node", hybrid.ErrInvalidOption)
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Server{node: node, headers: o.Headers, logger: o.Logger, rules: &ruleset{}}
	if err := s.SetRules(rules); err != nil {
		return nil, err
	}
	return s, nil
}

// Register offers the service on a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { rlsv3.RegisterRateLimitServiceServer(r, s) }

// Node returns the node that the server was made on.
func (s *Server) Node() *hybrid.Node { return s.node }

// SetRules replaces the rules. Requests under way are answered by the old ones,
// later requests by the new ones. It returns when the limiters of rules that are
// gone are closed, after a second at most.
//
// It fails like New, and with hybrid.ErrClosed once the server is closed; the old
// rules stay then. Only a node that is closed at the same time can fail it later.
func (s *Server) SetRules(rules *Rules) error {
	if rules == nil {
		return fmt.Errorf("%w: rules: nil, allowed what Parse returned", hybrid.ErrInvalidOption)
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	c := planChange(s.rules, rules)
	if s.closed {
		return fmt.Errorf("hybridrls: %w", hybrid.ErrClosed)
	}
	if err := c.open(s.node); err != nil {
		return err
	}
	if err := s.publish(c, rules); err != nil {
		closeAll(c.fresh)
		return err
	}
	return c.finish(s.node)
}

// publish puts new rules in force. Nobody is between a match and a charge then.
func (s *Server) publish(c *change, rules *Rules) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := c.setLimits(); err != nil {
		return err
	}
	s.rules, s.sum = c.next, rules.sum
	return nil
}

// Close ends the service and closes the limiters of its rules, not the node.
// Requests under way get their answers, later ones Unavailable.
func (s *Server) Close() {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.mu.Lock()
	slots := s.rules.slots
	s.rules, s.closed = &ruleset{}, true
	s.mu.Unlock()
	var all []*slot
	for _, one := range slots {
		if one.limiter != nil {
			all = append(all, one)
		}
	}
	closeAll(all)
}

// mostDescriptors bounds the work of one request. Gateways send one descriptor per
// configured list of actions: a few.
const mostDescriptors = 100

// ShouldRateLimit decides a request. It is what gRPC calls.
func (s *Server) ShouldRateLimit(ctx context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	s.counters.requests.Add(1)
	v, err := s.answer(ctx, req)
	if err != nil {
		s.counters.errors.Add(1)
		return nil, toStatus(err)
	}
	return s.respond(req, v), nil
}

func (s *Server) answer(ctx context.Context, req *rlsv3.RateLimitRequest) (*verdict, error) {
	if err := checkRequest(req); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, hybrid.ErrClosed
	}
	d := s.rules.domains[req.GetDomain()]
	if d == nil {
		s.counters.unknownDomains.Add(1)
		return &verdict{}, nil
	}
	p, err := s.plan(ctx, d, req)
	if err != nil {
		return nil, err
	}
	return p.run(ctx, s.node)
}

// checkRequest refuses what only the configuration of a gateway can cause.
func checkRequest(req *rlsv3.RateLimitRequest) error {
	switch n := len(req.GetDescriptors()); {
	case req.GetDomain() == "":
		return status.Error(codes.InvalidArgument, "hybridrls: domain: empty, allowed at least one byte")
	case n == 0 || n > mostDescriptors:
		return status.Errorf(codes.InvalidArgument, "hybridrls: descriptors: %d, allowed 1 to %d", n, mostDescriptors)
	}
	return nil
}

// toStatus is an error as gRPC has it.
func toStatus(err error) error {
	switch _, isStatus := status.FromError(err); {
	case isStatus:
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, hybrid.ErrClosed):
		return status.Error(codes.Unavailable, "hybridrls: the service is closed")
	default:
		return status.Error(codes.Internal, err.Error())
	}
}
