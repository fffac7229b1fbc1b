package syncer

import (
	"container/heap"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
)

// timerQueue is the accounts that need the loop's attention at some moment, the earliest
// first. Lock order: Account.mu before timerQueue.mu.
type timerQueue struct {
	mu     sync.Mutex
	heap   dueHeap
	next   int64  // ns, when the loop wakes
	wakeup func() // the loop sleeps too long

	size atomic.Int64 // of the heap, for requests to read without the lock
}

// set plans the next look at an account; due 0 is never. The caller holds the account's mu.
func (q *timerQueue) set(a *Account, due int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.planLocked(a, due)
}

// ensure plans a look at an account, unless one is planned already. The caller
// holds the account's mu.
func (q *timerQueue) ensure(a *Account, due int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.active.Load().slot < 0 {
		q.planLocked(a, due)
	}
}

// sooner plans a look at an account, unless an earlier one is planned: what is asked
// for again and again must not put off itself. The caller holds the account's mu.
func (q *timerQueue) sooner(a *Account, due int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := a.active.Load(); c.slot < 0 || due < c.due {
		q.planLocked(a, due)
	}
}

// plan is set. The caller holds both locks.
func (q *timerQueue) planLocked(a *Account, due int64) {
	a.active.Load().due = due
	switch slot := a.active.Load().slot; {
	case due == 0 && slot >= 0:
		heap.Remove(&q.heap, slot)
	case due == 0:
	case slot >= 0:
		q.heap[slot].due = due
		heap.Fix(&q.heap, slot)
	default:
		heap.Push(&q.heap, item{due, a, a.active.Load()})
	}
	q.size.Store(int64(len(q.heap)))
	if due != 0 && due < q.next {
		q.next = due
		q.wakeup()
	}
}

// plan does what a step says of the timer.
func (q *timerQueue) plan(a *Account, how key.Timer, due int64) {
	switch how {
	case key.SetTimer:
		q.set(a, due)
	case key.TimerBy:
		q.sooner(a, due)
	case key.EnsureTimer:
		q.ensure(a, due)
	case key.StopTimer:
		q.set(a, 0)
	}
}

// mostDue is how much is taken at once: requests wait for the lock meanwhile.
const mostDue = 256

// take removes and returns what is due, or a part of it, and when the next is.
func (q *timerQueue) take(now int64) (due []*Account, next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.heap) > 0 && q.heap[0].due <= now && len(due) < mostDue {
		due = append(due, heap.Pop(&q.heap).(item).account)
	}
	q.size.Store(int64(len(q.heap)))
	q.next = math.MaxInt64
	if len(q.heap) > 0 {
		q.next = q.heap[0].due
	}
	return due, q.next
}

// downtime is how long an account is left alone while the store is down: long
// enough that looking at all of them takes little of a core.
func (q *timerQueue) downtime() int64 {
	const perAccount = int64(20 * time.Microsecond)
	return max(int64(key.ProbeInterval), q.size.Load()*perAccount)
}

func (q *timerQueue) len() int { return int(q.size.Load()) }

type item struct {
	due     int64
	account *Account
	active  *active // whose slot says where the item is
}

// dueHeap implements heap.Interface.
type dueHeap []item

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].active.slot, h[j].active.slot = i, j
}

// Push and Pop are called by package heap only.
func (h *dueHeap) Push(x any) {
	it := x.(item)
	it.active.slot = len(*h)
	*h = append(*h, it)
}

func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	it := (*h)[last]
	(*h)[last] = item{}
	*h = (*h)[:last]
	it.active.slot = -1
	return it
}
