// Package redisd runs the Redis that a measurement needs: a server of its own
// on a free loopback port, what that server has done and used, and a longer way
// to it.
package redisd
