package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

const (
	requestTimeout = 20 * time.Millisecond
	callTimeout    = time.Second
	tickEvery      = 100 * time.Millisecond
)

// world is a batcher on a store that a test writes, in virtual time.
type world struct {
	*Batcher
	start time.Time

	mu      sync.Mutex
	send    func(batch []*slice.Settle) // nil: all settles are executed at once
	batches []int                       // settles of each call
	failed  []error
	changes []bool       // of the whole
	shards  map[int]bool // that are down, as ShardChanged says
}

func story(t *testing.T, shards int, tell func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{start: time.Now(), shards: map[int]bool{}}
		w.Batcher = New(Config{
			Shards: shards, Timeout: requestTimeout, CallTimeout: callTimeout,
			Now: func() int64 { return int64(time.Since(w.start)) },
			Send: func(_ context.Context, batch []*slice.Settle) {
				w.mu.Lock()
				w.batches = append(w.batches, len(batch))
				send := w.send
				w.mu.Unlock()
				if send == nil {
					send = ran
				}
				send(batch)
			},
			Failed:       func(err error) { w.set(func() { w.failed = append(w.failed, err) }) },
			Changed:      func(down bool, _ error) { w.set(func() { w.changes = append(w.changes, down) }) },
			ShardChanged: func(shard int, down bool) { w.set(func() { w.shards[shard] = down }) },
		})
		tell(w)
		w.set(func() { w.send = nil })
		w.Wait()
		synctest.Wait()
		for i, s := range w.Shards() {
			if len(s.calls) > 0 || s.callers != 0 {
				t.Errorf("shard %d: %d calls and %d goroutines are left", i, len(s.calls), s.callers)
			}
		}
	})
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) failures() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failed)
}

func (w *world) calls() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.batches)
}

// slow makes every call take that long.
func (w *world) slow(d time.Duration) {
	w.set(func() { w.send = func(batch []*slice.Settle) { time.Sleep(d); ran(batch) } })
}

// ran is a store that executes everything.
func ran(batch []*slice.Settle) {
	for _, st := range batch {
		st.Outcome, st.Err = slice.Ran, nil
	}
}

var errGone = errors.New("connection refused")

// gone is a store that executes nothing.
func gone(batch []*slice.Settle) {
	for _, st := range batch {
		st.Outcome, st.Err = slice.NotRun, errGone
	}
}

// sleep lets time pass, and all that happens in it be seen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// goDown opens a shard's breaker.
func (w *world) goDown(s *Shard) {
	for !s.Down() {
		s.TimedOut(w.cfg.Now())
		time.Sleep(requestTimeout)
	}
}

// comeBack closes it, as a probe does.
func (w *world) comeBack(s *Shard) {
	for s.Down() {
		time.Sleep(requestTimeout)
		s.Answered(w.cfg.Now(), w.cfg.Now())
	}
}

// job is a Job with something to tell.
type job struct {
	mu        sync.Mutex
	quiet     bool          // it has nothing to tell
	moved     bool          // its place in the background is void
	user      time.Duration // that its user code takes
	refreshed int
	prepared  int
	done      []*slice.Settle
	unsent    int
}

func (j *job) Refresh(int64) {
	j.mu.Lock()
	j.refreshed++
	j.mu.Unlock()
	time.Sleep(j.user)
}

func (j *job) Prepare(background bool, _ int64) (*slice.Settle, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if background && j.moved {
		return nil, false
	}
	j.prepared++
	if j.quiet {
		return nil, true
	}
	return &slice.Settle{}, true
}

func (j *job) Done(st *slice.Settle, sent bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done = append(j.done, st)
	if !sent {
		j.unsent++
	}
}

// submit queues n new jobs that requests wait for.
func submit(s *Shard, n int) []*job { return queue(s.Submit, n) }

// submitLater queues n new jobs in the background.
func submitLater(s *Shard, n int) []*job { return queue(s.SubmitLater, n) }

func queue(submit func(Job), n int) (jobs []*job) {
	for range n {
		j := &job{}
		jobs = append(jobs, j)
		submit(j)
	}
	return jobs
}

// ends returns how often the job has ended.
func (j *job) ends() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.done)
}

// ended fails unless each job ended once, with an outcome.
func ended(t *testing.T, jobs []*job, want slice.Outcome) {
	t.Helper()
	for i, j := range jobs {
		j.mu.Lock()
		if len(j.done) != 1 || j.done[0] == nil || j.done[0].Outcome != want {
			t.Errorf("job %d of %d ended with %v, want once with %v", i, len(jobs), j.done, want)
		}
		j.mu.Unlock()
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
