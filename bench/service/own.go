package service

import (
	"runtime/metrics"
	"time"
)

// own is what this process has used since it began, and the whole machine beside it.
type own struct {
	cpu     time.Duration // of the processors
	gc      time.Duration // of it, by the garbage collector, as of its last cycle
	cycles  uint64        // of the garbage collector
	machine time.Duration // of the processors, by all programs; 0: not told
	heap    uint64        // bytes in use, not a difference
}

func (o own) since(a own) own {
	o.cpu -= a.cpu
	o.gc -= a.gc
	o.cycles -= a.cycles
	o.machine -= a.machine
	return o
}

func readOwn() own {
	s := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s)
	return own{
		cpu:     processorTime(),
		gc:      time.Duration(s[0].Value.Float64() * float64(time.Second)),
		cycles:  s[1].Value.Uint64(),
		machine: machineTime(),
		heap:    s[2].Value.Uint64(),
	}
}
