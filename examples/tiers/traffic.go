package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	offered = 300         // requests of each customer in an act, spread evenly over it
	length  = time.Second // of an act
	scans   = 1500        // requests of one address, each in another customer's name
)

// load lets customers send at the same time, each from an address of its own.
func load(g *gate, customers ...string) ([]row, error) {
	rows, errs := make([]row, len(customers)), make([]error, len(customers))
	var all sync.WaitGroup
	for i, customer := range customers {
		all.Go(func() { rows[i], errs[i] = send(g, "address of "+customer, customer) })
	}
	all.Wait()
	return rows, errors.Join(errs...)
}

// send is one customer in one act.
func send(g *gate, address, customer string) (row, error) {
	ctx, start := context.Background(), time.Now()
	r := row{customer: customer, offered: offered, limit: g.handler.Limit(customer)}
	for i := range offered {
		time.Sleep(time.Until(start.Add(length * time.Duration(i) / offered)))
		came, err := g.pass(ctx, address, customer)
		if err != nil {
			return r, err // misuse, never Redis: see FailurePolicy
		}
		if came == served {
			r.served++
		}
	}
	r.took = time.Since(start)
	return r, nil
}

// scan is what became of a scan.
type scan struct {
	atEdge int
	took   time.Duration
}

// scanNames is somebody who looks for customers: a request in each of many names, as
// fast as they go. The precise limit would let all of them pass, as no name is used twice.
func scanNames(g *gate) (s scan, err error) {
	ctx, start := context.Background(), time.Now()
	for i := range scans {
		came, err := g.pass(ctx, "203.0.113.9", fmt.Sprint("customer-", i))
		if err != nil {
			return s, err
		}
		if came == atEdge {
			s.atEdge++
		}
	}
	s.took = time.Since(start)
	return s, nil
}
