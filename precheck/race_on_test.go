//go:build race

package precheck

const raceEnabled = true // searches are shorter: the detector slows them tenfold
