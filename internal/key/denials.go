package key

import "time"

// denialSpan is the time constant of a key's rate of denials: what a person who looks
// at it takes for now.
const denialSpan = int64(10 * time.Second)

// denials counts denied requests, for people who ask which keys are denied most.
type denials struct {
	lately decaying // by denialSpan
	total  uint64   // since the key came in touch with the store
}

// add counts requests that were denied since the last call, perhaps none.
func (d *denials) add(requests, now int64) {
	d.lately.add(float64(requests), now, denialSpan)
	d.total += uint64(requests)
}

// rate returns the requests per second that are denied, as of the last call of add.
func (d *denials) rate() float64 { return d.lately.over(int64(time.Second), denialSpan) }
