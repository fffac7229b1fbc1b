package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/examples/internal/demo"
)

// All or nothing, with four limits and callers that compete: the books of each
// day hold what was admitted, and nothing of what was denied.
func TestMultilimit(t *testing.T) {
	var out bytes.Buffer
	s, err := run(&out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log("\n" + out.String())
	admitted := 0
	for _, c := range s.clients {
		admitted += c.admitted
		if c.day != int64(c.admitted) || c.day > 12 {
			t.Errorf("%s: %d of 12 a day admitted, %d charged", c.user, c.admitted, c.day)
		}
		for by := range c.denied {
			if !strings.HasSuffix(by, "per second") && !strings.HasSuffix(by, "per day") {
				t.Errorf("%s: denied by %q", c.user, by)
			}
		}
	}
	if admitted != 30 || s.tenant != 30 {
		t.Errorf("%d of the tenant's 30 a day admitted, %d charged", admitted, s.tenant)
	}
	zoe := s.clients[3]
	if zoe.admitted != 0 || zoe.last != "tenant per day" || len(zoe.denied) != 1 {
		t.Errorf("after the tenant's day: %+v", zoe)
	}
	for _, want := range []string{"ann", "tenant per day", "used up its 30 of the day; zoe has used 0 of hers"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
}

// Which limit denied is known exactly, also where all allow the same number.
func TestLimitsAreToldApart(t *testing.T) {
	node, stop, err := demo.OpenNode("multilimit")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	q, err := newQuotas(node)
	if err != nil {
		t.Fatal(err)
	}
	for _, quota := range q.all {
		if err := quota.limiter.SetLimit(hybrid.PerDay(2)); err != nil {
			t.Fatal(err)
		}
	}
	for i, quota := range q.all {
		r := request{user: fmt.Sprint("user ", i), tenant: fmt.Sprint("tenant ", i)}
		if _, err := quota.limiter.AllowN(t.Context(), quota.key(r), 2); err != nil {
			t.Fatal(err)
		}
		res, err := q.allow(t.Context(), r)
		if err != nil || res.Allowed || q.all[res.Check].name != quota.name {
			t.Errorf("%s is used up: %+v, %v, by %s", quota.name, res, err, q.all[res.Check].name)
		}
	}
}
