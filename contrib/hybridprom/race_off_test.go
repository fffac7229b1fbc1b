//go:build !race

package hybridprom

const raceDetector = false
