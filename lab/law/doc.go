// Package law predicts what a service costs its store, and its nodes in memory,
// from the protocol alone: a reader can plan for a fleet that no machine at hand
// can run. The lab measures where it can, and puts the two beside each other.
//
//	popularity ─▶ rate of each key ─▶ what keeps its nodes busy ─▶ sums
//	                                  floor · slice · pace
//
// It knows token buckets under Balanced or a like dial, requests of one token,
// and nodes that get equal parts of each key's requests.
package law
