//go:build race

package chaos

// raceDetector makes the suite brief: everything is several times slower.
const raceDetector = true
