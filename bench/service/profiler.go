package service

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"runtime/pprof"
	"time"
)

// profiler records where processor time goes and where goroutines wait for locks. It
// does so after the measured part, which it would disturb.
type profiler struct {
	cpu, mutex []byte // as package pprof writes them
	length     time.Duration
}

// mutexSample is how many waits for a lock there are for one in the profile.
const mutexSample = 5

// record profiles this process for some time.
func (p *profiler) record(ctx context.Context, d time.Duration) error {
	var cpu, mutex bytes.Buffer
	old := runtime.SetMutexProfileFraction(mutexSample)
	defer runtime.SetMutexProfileFraction(old)
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		return err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	pprof.StopCPUProfile()
	err := pprof.Lookup("mutex").WriteTo(&mutex, 0)
	p.cpu, p.mutex, p.length = cpu.Bytes(), mutex.Bytes(), d
	return errors.Join(err, ctx.Err())
}
