package debugui

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

func TestMasksShowAThirdAtMost(t *testing.T) {
	k := newKeyring(false)
	for key, want := range map[string]string{
		"customer-42": "cus…", "sk_live_51H8xQ2": "sk_…", "203.0.113.9": "203…", "ann": "a…", "no": "…", "7": "…", "": "…",
		"müller": "mü…", "\xff\xfe\xfd\xfc\xfb\xfa": `\xff\xfe…`, "</script>": "</s…", "日本語のキー鍵": "日本…",
	} {
		got := k.show("api", key)
		if !strings.HasPrefix(got, want) || utf8.RuneCountInString(got) != utf8.RuneCountInString(want)+6 {
			t.Errorf("%q is shown as %q, want %q and six digits", key, got, want)
		}
	}
}

func TestMasksTellKeysApart(t *testing.T) {
	k, other := newKeyring(false), newKeyring(false)
	masks := map[string]bool{}
	for i := range 1000 {
		masks[k.show("api", fmt.Sprintf("customer-%d", i))] = true
	}
	if len(masks) < 997 { // of 16 million, two of a thousand are alike once in thirty times
		t.Errorf("a thousand keys have %d masks", len(masks))
	}
	if k.show("api", "customer-1") != k.show("api", "customer-1") {
		t.Error("a mask changes")
	}
	if k.show("api", "customer-1") == k.show("login", "customer-1") || k.sum("a", "bc") == k.sum("ab", "c") {
		t.Error("a mask follows a key from limiter to limiter")
	}
	if k.show("api", "customer-1") == other.show("api", "customer-1") {
		t.Error("masks can be tried out: they are the same in each process")
	}
}

func TestKeysAreShownOnDemand(t *testing.T) {
	k := newKeyring(true)
	for key, want := range map[string]string{
		"customer-42": "customer-42", "": "", "a b": "a b", "naïve": "naïve", `C:\new`: `C:\\new`, "tab\tnew\nline": `tab\tnew\nline`, "\x00\x7f": `\x00\x7f`,
		"\xff": `\xff`, "abc\u202edef": `abc\u202edef`, "zero\u200bwidth": `zero\u200bwidth`, "</script>": "</script>",
		strings.Repeat("k", 200): strings.Repeat("k", 128) + "…",
	} {
		if got := k.show("api", key); got != want {
			t.Errorf("%q is shown as %q, want %q", key, got, want)
		}
	}
}

func TestListedKeysAreFoundForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyring(false)
		id := k.list("api", "customer-42")
		for range 3 {
			if l, ok := k.find(id); !ok || l != (listed{"api", "customer-42"}) {
				t.Fatalf("%q is %v, %t", id, l, ok)
			}
			time.Sleep(50 * time.Second)
			k.list("api", "another")
		}
		if strings.Contains(id, "customer") || len(id) != 32 {
			t.Errorf("the id %q tells the key", id)
		}
		if _, ok := k.find(id[:31]); ok {
			t.Error("half an id finds a key")
		}
		for range 2 {
			time.Sleep(3 * time.Minute)
			k.list("api", "another")
		}
		if _, ok := k.find(id); ok {
			t.Error("a key that is not listed any more is still remembered")
		}
	})
}

func TestListedKeysAreBounded(t *testing.T) {
	k := newKeyring(false)
	var first string
	for i := range 4 * mostYoung {
		id := k.list("api", fmt.Sprint(i))
		if i == 0 {
			first = id
		}
		if i == mostYoung/2 {
			if _, ok := k.find(first); !ok {
				t.Error("a key that was listed just now is forgotten")
			}
		}
	}
	if n := len(k.young) + len(k.old); n > 2*mostYoung {
		t.Errorf("%d keys are remembered", n)
	}
}

// Names and keys are anybody's bytes: whatever they are, what is shown is valid text
// of visible characters, and says no more of a masked key than it should.
func FuzzKeysAreShownAsText(f *testing.F) {
	for _, s := range []string{"", "customer-42", "</script><script>alert(1)</script>", "\x00\xff\u2028\u202e", `\`, "日本", "a\u0301"} {
		f.Add(s)
	}
	plain, masked := newKeyring(true), newKeyring(false)
	f.Fuzz(func(t *testing.T, key string) {
		for _, shown := range []string{plain.show("api", key), masked.show("api", key)} {
			if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x202e }) {
				t.Errorf("%q is shown as %q", key, shown)
			}
		}
		if shown := masked.show("api", key); len(key) > 24 && strings.Contains(shown, key[len(key)/2:]) {
			t.Errorf("%q is shown as %q", key, shown)
		}
	})
}
