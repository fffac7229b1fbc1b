package httplimit

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/fields"
)

// Decider is a middleware without a server: it decides requests and says what to
// answer, in the words that New uses, and somebody else writes it down. It is
// for servers that do not speak net/http, such as fasthttp: contrib/hybridfiber is
// made of one. All methods may be called from any goroutine.
type Decider struct {
	answers
	limits []limit // at least one
}

// DeciderOptions are the settings of a Decider. The zero value of each field means
// its default. Those that Options has too are the same.
type DeciderOptions struct {
	Headers Headers
	Names   Names
	Problem bool
	NoKey   int

	// CopyKeys is for servers that use the memory of a request's strings again when
	// it is over: keys are copied before anybody remembers them.
	CopyKeys bool

	// Owner is for adapters: the type whose settings they pass on, as in
	// "hybridfiber.Options". Errors name its fields, and its field More for the limits
	// after the first; default DeciderOptions and limits.
	Owner string
}

// field is what errors call a setting.
func (o *DeciderOptions) field(name string) string {
	return cmp.Or(o.Owner, "httplimit.DeciderOptions") + "." + name
}

// limit is what errors call a limit.
func (o *DeciderOptions) limit(i int) string {
	switch {
	case o.Owner == "":
		return fmt.Sprintf("httplimit.NewDecider: limits[%d]", i)
	case i == 0:
		return o.Owner
	default:
		return fmt.Sprintf("%s.More[%d]", o.Owner, i-1)
	}
}

// Limit is a limit that requests must pass.
type Limit struct {
	Limiter *hybrid.Limiter
	Key     Key                 // default RemoteIP(nil); of further limits that of the first
	Cost    func(Request) int64 // default 1 for each; of further limits that of the first. 0 is free of this limit
	Name    string              // default the limiter's name
}

// NewDecider makes a Decider of the limits that each request must pass, at least
// one. Their limiters must be of one node. Keys made by KeyFunc are for New alone.
//
// It fails with hybrid.ErrInvalidOption.
func NewDecider(limits []Limit, opts *DeciderOptions) (*Decider, error) {
	if opts == nil {
		opts = &DeciderOptions{}
	}
	for i := range limits {
		if limits[i].Key.native {
			return nil, refused(opts.limit(i)+".Key", "made by httplimit.KeyFunc", "keys that need no *http.Request")
		}
	}
	return newDecider(limits, opts)
}

func newDecider(limits []Limit, o *DeciderOptions) (*Decider, error) {
	if len(limits) == 0 {
		return nil, invalid("NewDecider", "no limits", "at least one")
	}
	a, err := o.answers()
	if err != nil {
		return nil, err
	}
	d := &Decider{answers: a}
	for i, l := range limits {
		if err := d.add(o.limit(i), l); err != nil {
			return nil, err
		}
	}
	if o.CopyKeys {
		for i := range d.limits {
			d.limits[i].find = copied(d.limits[i].find)
		}
	}
	return d, nil
}

// copied finds the same keys, which may be kept. What is no key is not copied.
func copied(find func(Request) (string, error)) func(Request) (string, error) {
	return func(r Request) (string, error) {
		key, err := keyBy(find, r)
		return strings.Clone(key), err
	}
}

// limit is a Limit with its defaults.
type limit struct {
	limiter   *hybrid.Limiter
	find      func(Request) (string, error) // of its Key
	sharesKey bool                          // the key is that of the first limit
	cost      func(Request) int64           // nil: 1
	name      string
	quoted    string // name as a structured field has it
	policies  *policies
}

// add adds a limit that requests must pass, after those before it.
func (d *Decider) add(field string, c Limit) error {
	switch {
	case c.Limiter == nil:
		return refused(field+": the limiter", "nil", "a limiter")
	case c.Key.err != nil:
		return c.Key.err
	}
	l := limit{limiter: c.Limiter, find: c.Key.find, cost: c.Cost, name: cmp.Or(c.Name, c.Limiter.Name()), policies: &policies{}}
	if len(d.limits) > 0 {
		first := &d.limits[0]
		if l.limiter.Node() != first.limiter.Node() {
			return refused(field, fmt.Sprintf("limiter %q of another node", l.limiter.Name()), fmt.Sprintf("limiters of the node of %q", first.limiter.Name()))
		}
		if c.Key.isZero() {
			l.sharesKey, l.find = true, first.find
		}
		if l.cost == nil {
			l.cost = first.cost
		}
	} else if c.Key.isZero() {
		l.find = RemoteIP(nil).find
	}
	var ok bool
	if l.quoted, ok = fields.Quote(l.name); !ok && d.style == IETF {
		return refused(field+".Name", fmt.Sprintf("%.64q", l.name), "printable ASCII in the IETF headers; the default is the limiter's name")
	}
	d.limits = append(d.limits, l)
	return nil
}

func (l *limit) costOf(r Request) int64 {
	if l.cost == nil {
		return 1
	}
	return l.cost(r)
}

// Decide charges a request, or says why it may not pass. A request that is free of all
// limits is allowed by a Decision that has no Limiter: it shows none.
//
// It fails with ErrNoKey, or like hybrid.Limiter.AllowN: Failure says what to
// answer then.
func (d *Decider) Decide(r Request) (Decision, error) {
	v, err := d.decide(r.Context(), r)
	switch {
	case err != nil:
		return Decision{}, err
	case v.limit == nil:
		return Decision{Result: hybrid.Result{Allowed: true}, Status: http.StatusOK}, nil
	}
	return v.decision(), nil
}

// verdict is the answer to a request, and the limit that it is about: as much of a
// Decision as most requests need.
type verdict struct {
	limit  *limit // nil: the request was free
	key    string
	result hybrid.Result
}

func (d *Decider) decide(ctx context.Context, r Request) (verdict, error) {
	if len(d.limits) > 1 {
		return d.decideAll(ctx, r)
	}
	l := &d.limits[0]
	cost := l.costOf(r)
	if cost == 0 {
		return verdict{}, nil // AllowN would peek, which asks Redis
	}
	key, err := keyBy(l.find, r)
	if err != nil {
		return verdict{}, err
	}
	res, err := l.limiter.AllowN(ctx, key, cost)
	return verdict{limit: l, key: key, result: res}, err
}

// decideAll decides a request that several limits must admit.
func (d *Decider) decideAll(ctx context.Context, r Request) (verdict, error) {
	var roomC [4]hybrid.Check
	var roomL [4]*limit
	checks, limits, err := d.checks(r, roomC[:0], roomL[:0])
	if err != nil || len(checks) == 0 {
		return verdict{}, err
	}
	res, err := limits[0].limiter.Node().AllowAll(ctx, checks...)
	if err != nil {
		return verdict{}, err
	}
	return verdict{limit: limits[res.Check], key: checks[res.Check].Key, result: res}, nil
}

// checks appends what a request must pass, and of which limits that is. What is
// free is left out: in a hybrid.Check a cost of 0 would mean 1.
func (d *Decider) checks(r Request, checks []hybrid.Check, limits []*limit) ([]hybrid.Check, []*limit, error) {
	shared := "" // the first limit's key, once somebody has needed it
	for i := range d.limits {
		l := &d.limits[i]
		cost := l.costOf(r)
		if cost == 0 {
			continue
		}
		key, shares := shared, i == 0 || l.sharesKey
		if !shares || shared == "" {
			var err error
			if key, err = keyBy(l.find, r); err != nil {
				return nil, nil, err
			}
		}
		if shares {
			shared = key
		}
		checks = append(checks, hybrid.Check{Limiter: l.limiter, Key: key, N: cost})
		limits = append(limits, l)
	}
	return checks, limits, nil
}
