package measure

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// perCall is how many nanoseconds pass between two calls while so many workers
// call for about d. Each worker counts up from its own place.
func perCall(workers int, d time.Duration, place func(worker int) int, call func(i int)) float64 {
	var calls atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for w := range workers {
		wg.Go(func() { calls.Add(callFor(begin, d, place(w), call)) })
	}
	wg.Wait()
	return float64(time.Since(begin)) / float64(calls.Load())
}

// batchTime is how long a worker calls without looking at the clock: a
// thousand times what a look costs.
const batchTime = 50 * time.Microsecond

func callFor(begin time.Time, d time.Duration, i int, call func(i int)) (calls int64) {
	for batch := 1; ; {
		from := time.Since(begin)
		if from >= d {
			return calls
		}
		for range batch {
			call(i)
			i++
		}
		calls += int64(batch)
		if time.Since(begin)-from < batchTime {
			batch *= 2
		}
	}
}

// pace has workers make calls at even times, whether or not others have their
// answers; a call that no worker is free for is late. It returns how many were
// made.
func pace(workers int, d, gap time.Duration, call func(i int)) int {
	var next atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range workers {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				due := time.Duration(i) * gap
				if due >= d || time.Since(begin) > 2*d {
					next.Add(-1)
					return
				}
				if early := due - time.Since(begin); early > nap {
					time.Sleep(early)
				}
				call(int(i))
			}
		})
	}
	wg.Wait()
	return int(next.Load())
}

// nap is the least that is slept: timers are no finer.
const nap = 200 * time.Microsecond

// median is the middle of a list, which it sorts.
func median[T ~int64 | ~float64](list []T) T { return quantile(list, 0.5) }

// quantile is the least value that so many of the list do not exceed. It sorts.
func quantile[T ~int64 | ~float64](list []T, q float64) T {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(q*float64(len(list))), len(list)-1)]
}

func mean[T ~int64 | ~float64](list []T) float64 {
	var sum float64
	for _, v := range list {
		sum += float64(v)
	}
	return sum / float64(max(len(list), 1))
}
