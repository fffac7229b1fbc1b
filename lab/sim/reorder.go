package sim

import "container/heap"

// reorder puts decisions into the order in which they count. Nearly all of them
// come in that order already, and only the others pay for a heap.
type reorder struct {
	queue []request // in order
	head  int       // of queue
	heap  requests  // what came too late for the queue
	top   bool      // the first one is the heap's
}

func (o *reorder) add(r request) {
	if n := len(o.queue); n > o.head && r.before(&o.queue[n-1]) {
		heap.Push(&o.heap, r)
		return
	}
	o.queue = append(o.queue, r)
}

// first is the decision that counts first, nil if there is none. It is valid
// until the next call of another method.
func (o *reorder) first() *request {
	queued := o.head < len(o.queue)
	o.top = len(o.heap) > 0 && (!queued || o.heap[0].before(&o.queue[o.head]))
	switch {
	case o.top:
		return &o.heap[0]
	case queued:
		return &o.queue[o.head]
	}
	return nil
}

// drop removes what first returned.
func (o *reorder) drop() {
	if o.top {
		heap.Pop(&o.heap)
		return
	}
	o.head++
	if o.head == len(o.queue) || o.head > 1024 && 2*o.head > len(o.queue) {
		n := copy(o.queue, o.queue[o.head:])
		o.queue, o.head = o.queue[:n], 0
	}
}

// requests implements heap.Interface.
type requests []request

func (h requests) Len() int           { return len(h) }
func (h requests) Less(i, j int) bool { return h[i].before(&h[j]) }
func (h requests) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are called by package heap only.
func (h *requests) Push(x any) { *h = append(*h, x.(request)) }

func (h *requests) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}
