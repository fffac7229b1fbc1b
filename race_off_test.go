//go:build !race

package hybrid

const raceDetector = false
