// Package precheck holds what a node asks after its slice said no and before it
// asks the store: the deny memo, the local buckets, and the floor that answers
// for keys far from their limit.
//
// It is internal to hybrid: use package hybrid. It may change with any version.
//
// It is pure: no clock, no goroutine, no I/O. Times are nanoseconds of the
// node's monotonic clock, and sizes come from the caller.
package precheck
