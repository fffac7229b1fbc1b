//go:build linux || darwin

package service

import (
	"os"
	"strconv"
	"strings"
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

// machineTime is what all programs have used of the processors, as far as the system
// tells it. Linux counts in hundredths of a second, for whatever is not idle.
func machineTime() time.Duration {
	file, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(file), "\n")
	var sum int64
	for i, field := range strings.Fields(line) {
		if n, err := strconv.ParseInt(field, 10, 64); err == nil && i != idle && i != waiting && i < guests {
			sum += n
		}
	}
	return time.Duration(sum) * time.Second / 100
}

// Fields of the first line of /proc/stat; its first is a name.
const (
	idle    = 4
	waiting = 5 // for a disk
	guests  = 9 // are counted before as well
)
