// Command multilimit shows requests that several limits must admit: per second
// and per day, of the user and of the tenant. All are charged or none.
//
// It needs nothing installed: the Redis in it is embedded, unless REDIS_URL
// names another.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/hybridlimit/hybrid/examples/internal/demo"
)

func main() {
	if _, err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "multilimit:", err)
		os.Exit(1)
	}
}

// story is what happened: three users of a tenant ask at the same time, until one
// limit or another sends them away for long; then a fourth one comes.
type story struct {
	clients []*client
	tenant  int64 // requests in the tenant's day, as Redis has it
}

// soon is how long a client waits rather than giving up.
const soon = time.Second

// client is a user who waits as long as a denial says, if that is soon.
type client struct {
	request
	admitted int
	denied   map[string]int // by the limit that denied
	last     string         // the limit that sent it away
	retry    time.Duration  // for how long
	day      int64          // requests in the user's day, as Redis has it
}

func run(out io.Writer) (*story, error) {
	node, stop, err := demo.OpenNode("multilimit")
	if err != nil {
		return nil, err
	}
	defer stop()
	q, err := newQuotas(node)
	if err != nil {
		return nil, err
	}
	s, ctx := &story{}, context.Background()
	for _, together := range [][]string{{"ann", "ben", "cat"}, {"zoe"}} {
		if err := s.send(ctx, q, together...); err != nil {
			return nil, err
		}
	}
	if err := node.Flush(ctx); err != nil { // Redis knows all now
		return nil, err
	}
	if err := s.ask(ctx, q); err != nil {
		return nil, err
	}
	return s, s.tell(out)
}

// send lets users of a tenant ask at the same time.
func (s *story) send(ctx context.Context, q *quotas, users ...string) error {
	errs := make([]error, len(users))
	var all sync.WaitGroup
	for i, user := range users {
		c := &client{request: request{user: user, tenant: "acme"}, denied: map[string]int{}}
		s.clients = append(s.clients, c)
		all.Go(func() { errs[i] = c.run(ctx, q) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (c *client) run(ctx context.Context, q *quotas) error {
	for c.retry <= soon {
		res, err := q.allow(ctx, c.request)
		if err != nil {
			return err // misuse, never Redis: see FailurePolicy
		}
		if res.Allowed {
			c.admitted++
			continue
		}
		c.last, c.retry = q.all[res.Check].name, res.RetryAfter
		c.denied[c.last]++
		if c.retry <= soon {
			time.Sleep(c.retry)
		}
	}
	return nil
}

// ask reads the books of the day.
func (s *story) ask(ctx context.Context, q *quotas) (err error) {
	for _, c := range s.clients {
		if c.day, err = q.used(ctx, "user per day", c.request); err != nil {
			return err
		}
	}
	s.tenant, err = q.used(ctx, "tenant per day", s.clients[0].request)
	return err
}

func (s *story) tell(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "user\tadmitted\tof the day\tsent away by\tfor\tdenied on the way")
	for _, c := range s.clients {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%v\t%s\n", c.user, c.admitted, c.day, c.last, c.retry.Round(time.Minute), counts(c.denied))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	zoe := s.clients[len(s.clients)-1]
	_, err := fmt.Fprintf(out, "\nthe tenant has used up its %d of the day; %s has used %d of hers, as who is denied by one limit is charged by none\n",
		s.tenant, zoe.user, zoe.day)
	return err
}

// counts lists denials by limit.
func counts(denied map[string]int) (list string) {
	for i, name := range slices.Sorted(maps.Keys(denied)) {
		if i > 0 {
			list += ", "
		}
		list += fmt.Sprintf("%d by %s", denied[name], name)
	}
	return list
}
