// Package conformance holds httplimit against what others have written: a parser
// of structured fields, a client that obeys Retry-After, and routers. It is a module
// of its own, so that a user of the library downloads none of them. There is
// nothing in it but tests.
package conformance
