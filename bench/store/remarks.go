package store

// why gives the reason for the lead of another layout.
func why(table, row string) string {
	switch row {
	case readAtOnce.name:
		return "it is not used, because it needs one more right (`+mget`) of whoever runs on the least of them, and accounts named twice in a call would be read before they are written"
	case asDeadline.name:
		return "it is not used, because the embedded server counts deadlines in microseconds, so that times to live would differ from those of Redis by one"
	default:
		return ""
	}
}

// remarks close the section.
const remarks = ""
