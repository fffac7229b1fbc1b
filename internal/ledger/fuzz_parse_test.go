package ledger

import "testing"

// FuzzParse reads any text as an account: what is read is written, and read, the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "0 0 0 0", "5.5 1795980557158196 1 2", "1e3 1795980557158196 0 47", "1e999 1 0 0", "nan 1 0 0", "3. 7 0 0", "-1 1 0 0", "5 1 3 3", "1 2 3", "1 2 3 4 5",
		" 1 2 0 0", "1 2 0 0 ", "1\t2 0 0", "0x10 1 0 0", "9007199254740992 8 0 1", "1e+17 1 0 0", "1 9223372036854775808 0 0", "1_0 1 0 0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := Parse(text)
		if !a.Stored {
			t.Fatalf("%q is stored, whatever it says", text)
		}
		if !(a.Used >= a.Lent()) || a.Lent() < 0 {
			t.Fatalf("%q: %+v", text, a)
		}
		if again := Parse(a.Text()); again != a {
			t.Fatalf("%q: %+v is written as %q and read as %+v", text, a, a.Text(), again)
		}
	})
}
