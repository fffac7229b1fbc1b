// Package measure lets the contestants do the same work, and says what it came
// to: one file per table.
//
// Contestants take turns within one run, so that a machine that slows down
// slows all of them; numbers are medians over the rounds.
package measure
