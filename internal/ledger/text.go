package ledger

import (
	"errors"
	"strconv"
	"strings"
)

const (
	digits  = "0123456789"    // of a whole number
	numeric = digits + ".e+-" // of a real number, which starts with a digit
)

// Text returns the stored form, "used ts lent0 lent1": the leases by parity of
// their epoch. An account that is not stored has none, nor has a damaged one.
func (a *Account) Text() string {
	if !a.Stored || a.Damaged {
		return ""
	}
	even, odd := a.Young, a.Old
	if epochOf(a.At)%2 != 0 {
		even, odd = odd, even
	}
	b := strconv.AppendFloat(make([]byte, 0, 64), a.Used, 'g', 17, 64)
	b = strconv.AppendInt(append(b, ' '), a.At, 10)
	b = strconv.AppendFloat(append(b, ' '), even, 'f', 0, 64)
	return string(strconv.AppendFloat(append(b, ' '), odd, 'f', 0, 64))
}

// Parse reads a stored form. What cannot be read, or makes no sense, is a
// damaged account.
func Parse(text string) Account {
	damaged := Account{Stored: true, Damaged: true}
	f := strings.Split(text, " ")
	if len(f) != 4 || !made(f[0][:min(1, len(f[0]))], digits) || !made(f[0], numeric) {
		return damaged
	}
	for _, whole := range f[1:] {
		if !made(whole, digits) {
			return damaged
		}
	}
	used, err := strconv.ParseFloat(f[0], 64)
	at, err1 := strconv.ParseInt(f[1], 10, 64)
	even, err2 := strconv.ParseFloat(f[2], 64)
	odd, err3 := strconv.ParseFloat(f[3], 64)
	a := Account{Stored: true, At: at, Used: used, Young: even, Old: odd}
	if epochOf(at)%2 != 0 {
		a.Young, a.Old = odd, even
	}
	if errors.Join(err, err1, err2, err3) != nil || a.Lent() > used || !a.readable() {
		return damaged
	}
	return a
}

// made says whether s consists of at least one of these characters.
func made(s, of string) bool { return s != "" && strings.Trim(s, of) == "" }
