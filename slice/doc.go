// Package slice holds what one node knows of an account in its own memory:
// the cell that admits requests, the lease behind it, the table of keys, and
// the values that travel to the store ([Settle]) and come back ([Grant]).
//
// It is internal to hybrid: use package hybrid, or exact.Store for single calls. It may
// change with any version.
//
// It is a leaf: it knows no Redis, reads no clock and starts no goroutine.
// Whoever calls it passes times and numbers in.
package slice
