// Package ledger is the store in plain Go: the account of a key as the script
// settles it, and a store of such accounts in memory. It is the reference that
// the script is tested against, and what model checkers and simulations run on
// where Redis would be too slow. Nothing in production imports it.
//
// An [Account] is a formulation of its own, not a translation of the script:
// its leases are young or old where the script has slots by parity, and what
// fits is found by bisection where the script divides. It computes with the
// script's doubles in the script's order wherever rounding could tell the two
// apart, so that they agree to the last bit.
package ledger
