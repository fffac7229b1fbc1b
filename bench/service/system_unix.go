//go:build linux || darwin

package service

import (
	"syscall"
	"time"
	"unsafe"
)

// offHeap returns room for n requests that the garbage collector does not see. On the
// heap, what a run is written down in would make it collect less often than in a
// service that writes nothing down. It is the process's until it ends.
func offHeap(n int) []request {
	size := n * int(unsafe.Sizeof(request{}))
	raw, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]request, n)
	}
	return unsafe.Slice((*request)(unsafe.Pointer(unsafe.SliceData(raw))), n)
}

// processorTime is what this process has used of the processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
