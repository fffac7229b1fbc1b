//go:build !race

package modelcheck

const raceDetector = false
