//go:build race

package hybrid

// raceDetector says that tests run under the race detector, which makes fleets
// in virtual time ten times slower.
const raceDetector = true
