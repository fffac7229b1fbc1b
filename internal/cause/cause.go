// Package cause names errors of Redis and of its client for logs and counters. Their text may
// hold addresses, names of users and whatever a server or a proxy says; a cause never does.
package cause

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/syncer"
)

// Other is the cause of an error that panics, that too many others came before, or that is one
// cause too many.
const Other = "other"

// Of returns the cause of an error, which may come from user code: a constant, a reply's code
// or a Go type.
func Of(err error) (cause string) {
	defer func() {
		if recover() != nil {
			cause = Other
		}
	}()
	return of(err)
}

// Value is the cause of an error in a log line. It is found when the line is written, as the text
// of an error may come from user code, too.
type Value struct{ Err error }

// LogValue implements slog.LogValuer.
func (v Value) LogValue() slog.Value { return slog.StringValue(Of(v.Err)) }

func of(err error) string {
	var reply redis.Error
	switch {
	case err == nil:
		return "unknown"
	case errors.As(err, &reply):
		return replyCause(reply.Error())
	}
	for _, k := range slices.Concat(ownCauses, systemCauses, knownCauses) {
		if errors.Is(err, k.err) {
			return k.cause
		}
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if text, ok := constantText[inner.Error()]; ok {
			return text
		}
	}
	return typeCause(err)
}

// ownCauses are what this library says of Redis, whatever else is in the error.
var ownCauses = []knownCause{
	{syncer.ErrTimeout, "timeout"},
	{syncer.ErrDown, "not sent: Redis does not answer"},
	{syncer.ErrSlow, "slow: more than one call in twenty took longer than StoreTimeout"},
	{exact.ErrShardDown, "a shard of the ring is down"},
	{exact.ErrReply, "unexpected reply"},
	{exact.ErrHook, "a hook of the client panicked"},
}

// knownCauses are looked through in order, after those of the operating system:
// what broke a connection says more than that it is closed.
var knownCauses = []knownCause{
	{redis.ErrClosed, "client closed"},
	{redis.ErrPoolTimeout, "no free connection in the pool"},
	{redis.ErrPoolExhausted, "no free connection in the pool"},
	{io.EOF, "connection closed"},
	{io.ErrUnexpectedEOF, "connection closed"},
	{io.ErrClosedPipe, "connection closed"}, // of a Dialer within the process
	{net.ErrClosed, "connection closed"},
	{context.Canceled, "cancelled"},
}

type knownCause struct {
	err   error
	cause string
}

// constantText are errors of the client that have no name, but one text, which says
// nothing but what it means.
var constantText = map[string]string{
	"redis: cluster has no nodes":                                     "no node of the cluster is reachable",
	"redis: all ring shards are down":                                 "all shards of the ring are down",
	"redis: all sentinels specified in configuration are unreachable": "no sentinel is reachable",
	"redis: connection unusable (reply stream desynchronized)":        "unexpected reply",
	"redis: connection not available":                                 "connection closed",
	"redis: connection not available for write operation":             "connection closed",
	"redis: timed out trying to mark connection as unusable":          "timeout",
}

// typeCause goes by the type of an error, and gives it where that says no more.
func typeCause(err error) string {
	var lookup *net.DNSError
	var timeout net.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &lookup):
		return "name resolution"
	case isTLS(err):
		return "TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "no connection"
	}
	return innermost(err)
}

func isTLS(err error) bool {
	var (
		alert     tls.AlertError
		record    tls.RecordHeaderError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	return errors.As(err, &alert) || errors.As(err, &record) || errors.As(err, &verify) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

func innermost(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// codes are the replies of servers that a node may meet. Other words of a reply
// are not repeated: a proxy or a module may say anything.
var codes = []string{
	"OOM", "READONLY", "LOADING", "NOPERM", "NOAUTH", "WRONGPASS", "BUSY", "MOVED", "ASK", "CLUSTERDOWN", "MASTERDOWN",
	"TRYAGAIN", "CROSSSLOT", "NOREPLICAS", "MISCONF", "NOSCRIPT", "WRONGTYPE", "UNBLOCKED", "EXECABORT", "NOPROTO", "DENIED",
}

// replyTexts are replies whose code is none, or not theirs.
var replyTexts = []struct{ text, cause string }{
	{"max number of clients", "reply max clients"},
	{"unauthenticated", "reply NOAUTH"}, // to a call that is too long for a stranger
	{"can't run this command", "reply NOPERM"},
	{"ACL failure in script", "reply NOPERM"}, // of Redis 8 and Valkey 8
	{"can't access at least one of the keys", "reply NOPERM"},
	{"cluster support disabled", "no cluster"},
}

// replyCause returns the code of an error reply. Redis before 7 puts the code of
// a command that a script made behind words of its own.
func replyCause(text string) string {
	for _, known := range replyTexts {
		if strings.Contains(text, known.text) {
			return known.cause
		}
	}
	for word := range strings.FieldsSeq(text) {
		for _, code := range codes {
			if strings.TrimLeft(word, "-") == code {
				return "reply " + code
			}
		}
	}
	return "reply ERR"
}
