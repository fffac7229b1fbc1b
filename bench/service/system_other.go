//go:build !linux && !darwin

package service

import "time"

func offHeap(n int) []request { return make([]request, n) }

// processorTime and machineTime are not asked for on this system.
func processorTime() time.Duration { return 0 }
func machineTime() time.Duration   { return 0 }
