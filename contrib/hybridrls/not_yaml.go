package hybridrls

import (
	"bytes"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// legible complains of a text that is too long, and of the first line with what no
// rules may have. The parser would count these lines otherwise, or not at all.
func (rd *reader) legible(text []byte) bool {
	if len(text) > mostText {
		rd.note(lineAt(text, mostText), "the text is longer than %d bytes, allowed up to that", mostText)
		return false
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if what := illegible(r, size); what != "" {
			rd.note(lineAt(text, at), "not YAML: %s", what)
			return false
		}
		at += size
	}
	return true
}

func illegible(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "not UTF-8"
	case r == '\t' || r == '\n' || r == '\r':
		return ""
	case r == '\u0085' || r == '\u2028' || r == '\u2029':
		return "a line end that is neither LF nor CR, which other programs do not count"
	case unicode.IsControl(r) || r == '\ufffe' || r == '\uffff':
		return "a control character"
	default:
		return ""
	}
}

// lineAt is the number of the line that a place in a text is in. A line ends with LF,
// CR or both.
func lineAt(text []byte, at int) int {
	before := text[:at]
	return 1 + bytes.Count(before, []byte("\n")) + bytes.Count(before, []byte("\r")) - bytes.Count(before, []byte("\r\n"))
}

// lastLine is the last line that is not blank: nobody looks for what is missing
// below it.
func lastLine(text []byte) int {
	return lineAt(text, len(bytes.TrimRight(text, " \t\r\n")))
}

// notYAML words the parser's complaint like ours, with the line that a person would
// look at, and with that where what is broken began.
func (rd *reader) notYAML(err error) {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		rd.note(1, "not YAML: %.200v", err)
		return
	}
	line, began := max(e.Mark.Line, 1), min(e.ContextMark.Line, rd.last)
	if began > 0 && beganWrong(e, line > rd.last) {
		line = began
	}
	where := ""
	if began > 0 && began != min(line, rd.last) {
		where = fmt.Sprintf(", %s from line %d", e.ContextMsg, began)
	}
	rd.note(line, "not YAML: %.200s%s", e.Message, where) // it repeats names of any length
}

// beganWrong reports whether what the parser has stumbled over is not where it
// stands but where it began: a quote or a bracket that does not end, and a key
// without its colon.
func beganWrong(e *yaml.LoadError, atEnd bool) bool {
	return atEnd || e.ContextMsg == "while scanning a simple key" || e.Message == "found unexpected document indicator"
}
