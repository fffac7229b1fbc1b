//go:build !linux

package service

import "time"

// alarm wakes one goroutine.
type alarm struct{}

func newAlarm() (*alarm, error)      { return &alarm{}, nil }
func (*alarm) sleep(d time.Duration) { time.Sleep(d) }
func (*alarm) stop()                 {}
