//go:build !plan9

package cause

import "syscall"

// systemCauses are the errors of the operating system.
var systemCauses = []knownCause{
	{syscall.ECONNREFUSED, "connection refused"},
	{syscall.ECONNRESET, "connection reset"},
	{syscall.EPIPE, "connection reset"},
	{syscall.ECONNABORTED, "connection reset"},
	{syscall.EHOSTUNREACH, "unreachable"},
	{syscall.ENETUNREACH, "unreachable"},
	{syscall.EMFILE, "too many open files"},
	{syscall.EADDRNOTAVAIL, "no free local port"},
}
