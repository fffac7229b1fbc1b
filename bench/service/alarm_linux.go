package service

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes one goroutine through the network poller, as an arriving request does. A
// plain timer of less than a millisecond takes a whole one there when the process has
// nothing else to do.
type alarm struct {
	fd   int
	file *os.File
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &alarm{fd, os.NewFile(uintptr(fd), "alarm")}, nil
}

// sleep is for one goroutine at a time.
func (a *alarm) sleep(d time.Duration) {
	var count [8]byte
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}
	if unix.TimerfdSettime(a.fd, 0, &spec, nil) != nil {
		time.Sleep(d)
		return
	}
	_, _ = a.file.Read(count[:]) // an early return is seen by who looks at the clock
}

func (a *alarm) stop() { _ = a.file.Close() }
