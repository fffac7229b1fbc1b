package cause

// systemCauses is empty where errors of the operating system have no numbers.
var systemCauses []knownCause
