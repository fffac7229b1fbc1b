// Package peer holds the contestants: this library in its accuracies, and the
// limiters that a Go service would use instead, each behind the same small
// interface and with the same limit.
//
// Each is set up the way its own documentation does it, with options that favour
// speed where it leaves a choice. None is wrapped in more than the interface.
package peer
