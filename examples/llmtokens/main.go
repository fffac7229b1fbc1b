// Command llmtokens shows budgets of tokens for a language model: an estimate is
// reserved before an answer is written, and settled when its cost is known.
//
// It needs nothing installed: the Redis in it is embedded, unless REDIS_URL
// names another.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/examples/internal/demo"
)

func main() {
	if _, err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "llmtokens:", err)
		os.Exit(1)
	}
}

var (
	// A month's tokens. It hardly refills while this program runs, so that its
	// books can be compared with what Redis says, to the token.
	perMonth = hybrid.Per(100_000, 30*24*time.Hour)
	// As fast as a customer may use them.
	perSecond = hybrid.PerSecond(5000)
)

// story is what happened.
type story struct {
	single [2]settled // an answer that is shorter than it might be, and one whose reader leaves
	crowd  crowd
	debt   debt
}

func run(out io.Writer) (*story, error) {
	node, stop, err := demo.OpenNode("llmtokens")
	if err != nil {
		return nil, err
	}
	defer stop()
	// Budgets cost money: never more than the limit, and nothing without Redis.
	opts := &hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: hybrid.FailClosed}
	month, err := node.Limiter("tokens per month", perMonth, opts)
	if err != nil {
		return nil, err
	}
	second, err := node.Limiter("tokens per second", perSecond, opts)
	if err != nil {
		return nil, err
	}
	s, ctx := &story{}, context.Background()
	if s.single, err = alone(ctx, &budget{limiter: month}); err != nil {
		return nil, err
	}
	if s.crowd, err = together(ctx, node, &budget{limiter: month}); err != nil {
		return nil, err
	}
	if s.debt, err = runaway(ctx, node, &budget{limiter: second}); err != nil {
		return nil, err
	}
	return s, s.tell(out)
}

func (s *story) tell(out io.Writer) error {
	short, left, c, d := s.single[0], s.single[1], s.crowd, s.debt
	_, err := fmt.Fprintf(out, `an answer:           reserved %d, used %d, refunded %d
a reader that left:  reserved %d, used %d, refunded %d

%d workers on %v until one answer does not fit:
  %d answers, %d denied
  reserved %d − refunded %d + charged %d = %d
  used by the model %d
  used as Redis has it %d

an answer of %d tokens for which %d were reserved, at %v:
  charged %d while it was written
  the next one is denied: retry after %v, as a debt is one burst at most
  admitted %v after the end of the answer
`,
		short.reserved, short.used, short.refunded, left.reserved, left.used, left.refunded,
		workers, perMonth, c.answers, c.denied, c.reserved, c.refunded, c.charged, c.booked(), c.used, c.inRedis,
		d.used, d.reserved, perSecond, d.charged, d.retry.Round(10*time.Millisecond), d.waited.Round(10*time.Millisecond))
	return err
}
