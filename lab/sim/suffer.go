package sim

import (
	"sync"
	"time"
)

// suffer lets the faults of the experiment happen.
func (f *fleet) suffer(start time.Time) {
	var lasting sync.WaitGroup
	for _, fault := range f.e.Faults {
		time.Sleep(fault.At - time.Since(start))
		if fault.Kind.lasts() {
			lasting.Go(func() { f.lasting(fault) })
			continue
		}
		f.strike(fault)
	}
	lasting.Wait()
}

var fateOf = map[FaultKind]fate{Refuse: refused, CutBefore: cutBefore, CutAfter: cutAfter, Swallow: swallowed}

// strike lets a fault happen that takes no time.
func (f *fleet) strike(fault Fault) {
	living := f.living()
	node := living[fault.Node%len(living)]
	way := f.member(node).link
	switch fault.Kind {
	case Join:
		f.join()
	case Mend:
		f.mend()
	case Crash, Leave:
		if len(living) == 1 {
			return // somebody has to be there
		}
		if fault.Kind == Crash {
			way.cut()
			f.member(node).wire.dead.Store(true)
		} else {
			f.meter.lenient.Store(true)
		}
		f.end(node)
	case Cut:
		way.cut()
	case Hole:
		way.blackHole(true)
	default:
		way.inject(fateOf[fault.Kind])
	}
}

// mend makes all links well, but those of the dead.
func (f *fleet) mend() {
	for _, m := range *f.nodes.Load() {
		if m.gone.Load() {
			continue
		}
		m.link.blackHole(false)
		if f.outages.Load() == 0 {
			m.link.restore()
		}
	}
}

// lasting lets a fault happen and end.
func (f *fleet) lasting(fault Fault) {
	switch fault.Kind {
	case Pause:
		f.pause(fault)
	case Restart:
		f.away(fault.For, f.backend.forgetScripts)
	case Wipe:
		f.away(fault.For, func() {
			f.backend.lose()
			f.backend.forgetScripts()
		})
	case Stale:
		restore := f.backend.snapshot()
		time.Sleep(fault.For)
		f.away(time.Second, restore)
	}
}

// pause makes a node stand still as far as virtual time can: nothing moves on its
// link, what it had sent arrives when it wakes up, and it gets no requests. Its
// own goroutines and timers go on, so that it knows when its leases end: what a
// process does that was stopped between two instructions is not simulated.
func (f *fleet) pause(fault Fault) {
	m := f.absent(fault.Node)
	if m == nil {
		return
	}
	m.link.freeze(fault.For)
	time.Sleep(fault.For)
	f.mu.Lock()
	defer f.mu.Unlock()
	m.paused.Store(false)
	f.setAlive()
}

// absent takes a node out of the traffic; nil if it is the last one.
func (f *fleet) absent(node int) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	living := f.living()
	if len(living) == 1 {
		return nil
	}
	m := f.member(living[node%len(living)])
	m.paused.Store(true)
	f.setAlive()
	return m
}

// away takes the store from everybody for a while. What happens to it happens
// in the middle of it.
func (f *fleet) away(d time.Duration, what func()) {
	links := func() (all []*link) {
		for _, m := range *f.nodes.Load() {
			if !m.gone.Load() {
				all = append(all, m.link)
			}
		}
		return all
	}
	f.outages.Add(1)
	for _, l := range links() {
		l.cut()
	}
	time.Sleep(d / 2)
	what()
	time.Sleep(d - d/2)
	if f.outages.Add(-1) > 0 {
		return // there is another one
	}
	for _, l := range links() {
		l.restore()
	}
}
