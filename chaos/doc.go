// Package chaos holds what a fleet of nodes must survive: real servers that
// are killed, stopped, filled, cut off or made to lie, under load, with each
// failure policy. All of it is tests:
//
//	go test ./chaos                            every fault, each for a second or two
//	go test ./chaos -run TestFaults/black      some of them
//	go test ./chaos -chaos.seconds 30          each for longer
//	go test ./chaos -chaos.seed 7              another load
//
// A run is a calm, a fault, its end and the recovery. What happens in it is
// recorded, and judged when it is over: a run that breaks a promise prints its
// fault, its seed, a timeline and the end of the server's log.
package chaos
