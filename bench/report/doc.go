// Package report writes what was measured: tables for a terminal, and blocks of
// docs/benchmarks.md. It knows numbers and text, and measures nothing.
package report
