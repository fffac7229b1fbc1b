//go:build race

package hybridprom

// raceDetector says that tests run under the race detector, which makes requests
// many times slower.
const raceDetector = true
