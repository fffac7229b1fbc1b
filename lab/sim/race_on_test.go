//go:build race

package sim

// raceDetector says that tests run under the race detector, which makes runs in
// virtual time ten times slower.
const raceDetector = true
