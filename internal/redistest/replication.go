package redistest

import (
	"context"
	"strings"
	"testing"
)

// StartReplica starts a server that replicates primary, and waits until it is in sync.
func StartReplica(t testing.TB, primary *Server, args ...string) *Server {
	t.Helper()
	host, port := hostPort(primary.Addr)
	must(t, primary.Client(t).ConfigSet(context.Background(), "repl-diskless-sync-delay", "0").Err()) // it waits 5 s for others
	r := Start(t, append([]string{"--replicaof", host, port}, args...)...)
	waitForLink(t, r)
	return r
}

// Sever ends the replication from primary to the replicas: what the primary
// acknowledges from now on they never see, until Mend. Each knows a wrong password, so
// it cannot come back.
func Sever(t testing.TB, primary *Server, replicas ...*Server) {
	t.Helper()
	ctx := context.Background()
	for _, r := range replicas {
		must(t, r.Client(t).ConfigSet(ctx, "masteruser", "nobody").Err())
		must(t, r.Client(t).ConfigSet(ctx, "masterauth", "wrong").Err())
	}
	must(t, primary.Client(t).Do(ctx, "client", "kill", "type", "replica").Err())
	for _, r := range replicas {
		rdb := r.Client(t)
		Eventually(t, "the replication is severed", func() bool { return !linked(rdb.Info(ctx, "replication").Val()) })
	}
}

// Mend allows what Sever forbade.
func Mend(t testing.TB, replicas ...*Server) {
	t.Helper()
	for _, r := range replicas {
		must(t, r.Client(t).ConfigSet(context.Background(), "masteruser", "").Err())
		must(t, r.Client(t).ConfigSet(context.Background(), "masterauth", "").Err())
	}
}

func waitForLink(t testing.TB, replica *Server) {
	t.Helper()
	rdb := replica.Client(t)
	Eventually(t, "the replica is in sync", func() bool { return linked(rdb.Info(context.Background(), "replication").Val()) })
}

func linked(info string) bool { return strings.Contains(info, "master_link_status:up") }
