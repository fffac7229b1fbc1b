// Package hybrid limits how often keys may act across a fleet of servers, from
// memory: each server holds a prepaid slice of every key's budget, admits from
// it with one atomic operation, and settles with Redis on a timer. Near a limit
// it asks Redis first.
package hybrid
