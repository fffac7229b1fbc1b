package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// roleVar tells a copy of this program what it is. A copy ends when its
// standard input does, and that happens however its parent ends.
const roleVar = "HYBRID_FLEET_ROLE"

// member is a running node, as the program that runs the fleet sees it.
type member struct {
	in     *gob.Encoder
	out    *gob.Decoder
	orders io.Closer
	wait   func() error
}

// launch starts a node in this process or as a process of its own.
func launch(ctx context.Context, procs bool) (*member, error) {
	if procs {
		return launchProcess()
	}
	orders, toNode := io.Pipe()
	fromNode, reports := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := runNode(ctx, orders, reports)
		orders.CloseWithError(err)
		reports.CloseWithError(err)
		done <- err
	}()
	return &member{
		in: gob.NewEncoder(toNode), out: gob.NewDecoder(fromNode), orders: toNode,
		wait: func() error {
			fromNode.Close() // a report that nobody reads must not hold the node up
			return <-done
		},
	}, nil
}

func launchProcess() (*member, error) {
	cmd, stdin, stdout, err := startCopy("node")
	if err != nil {
		return nil, err
	}
	return &member{in: gob.NewEncoder(stdin), out: gob.NewDecoder(stdout), orders: stdin, wait: cmd.Wait}, nil
}

// startCopy runs this program again in another role.
func startCopy(role string) (*exec.Cmd, io.WriteCloser, io.ReadCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	return cmd, stdin, stdout, cmd.Start()
}

// fleet is all nodes of a run.
type fleet []*member

// launchAll starts the nodes and waits until each has its limiter.
func launchAll(ctx context.Context, c config, redisURL, prefix string) (f fleet, err error) {
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	for i := range c.Nodes {
		m, err := launch(ctx, c.Procs)
		if err != nil {
			return f, err
		}
		f = append(f, m)
		if err := m.in.Encode(job{Config: c, Index: i, Redis: redisURL, Prefix: prefix}); err != nil {
			return f, err
		}
	}
	for i, m := range f {
		if r, err := m.next(); err != nil || !r.Ready {
			return f, fmt.Errorf("node %d did not start: %w", i+1, err)
		}
	}
	return f, nil
}

// next is the next message of the node; a failure of the node is an error.
func (m *member) next() (report, error) {
	var r report
	err := m.out.Decode(&r)
	if err == nil && r.Failed != "" {
		err = errors.New(r.Failed)
	}
	return r, err
}

// start lets traffic begin on all nodes at one time.
func (f fleet) start(at time.Time) error {
	for i, m := range f {
		if err := m.in.Encode(start{At: at}); err != nil {
			return fmt.Errorf("node %d: %w", i+1, err)
		}
	}
	return nil
}

// collect waits for the results; tell is called with each node's progress.
func (f fleet) collect(tell func(node int, p progress)) ([]result, error) {
	type outcome struct {
		node int
		res  *result
		err  error
	}
	outcomes := make(chan outcome)
	for i, m := range f {
		go func() {
			for {
				r, err := m.next()
				if err != nil || r.Result != nil {
					outcomes <- outcome{i, r.Result, err}
					return
				}
				if r.Progress != nil {
					tell(i, *r.Progress)
				}
			}
		}()
	}
	results := make([]result, len(f))
	var failed error
	for range f {
		o := <-outcomes
		if o.err != nil {
			failed = fmt.Errorf("node %d: %w", o.node+1, o.err)
			f.hangUp() // the others need not finish
			continue
		}
		results[o.node] = *o.res
	}
	return results, failed
}

// hangUp tells every node to end, and does not wait.
func (f fleet) hangUp() {
	for _, m := range f {
		_ = m.orders.Close()
	}
}

// stop ends every node and waits for it.
func (f fleet) stop() {
	f.hangUp()
	for _, m := range f {
		_ = m.wait() // its own report said why, if it failed
	}
}
