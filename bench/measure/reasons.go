package measure

// Why says why a contestant is ahead of the library in a table, where its code
// tells; it is shown only where it is ahead.
func Why(table, row string) string { return reasons[table][row] }

var reasons = map[string]map[string]string{}
