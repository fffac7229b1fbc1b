//go:build race

package modelcheck

// raceDetector says that tests run under the race detector, which makes searches
// ten times slower.
const raceDetector = true
