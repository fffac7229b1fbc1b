// Package store measures what an account costs Redis: the time of the settle script
// per account, for every kind of settle and every way to send them, beside scripts that
// do less than is needed, and beside other ways to store and to write an account.
//
// All scripts run on one server, on the same keys and arguments, in turns.
package store
