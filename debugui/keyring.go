package debugui

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// keyring says how keys are shown, and finds a key that was listed from the id it
// was listed with. Ids and masks are made with a secret of this process: nobody can
// try out a list of addresses to see which one a mask belongs to.
type keyring struct {
	secret []byte
	plain  bool // keys are shown as they are

	mu     sync.Mutex
	young  map[string]listed // by id
	old    map[string]listed // before the last turn
	turned time.Time
}

// listed is a key that a page may ask for.
type listed struct{ limiter, key string }

const (
	listedFor  = 2 * time.Minute // at least, but when very many are listed
	mostYoung  = 4096            // so there are never more than twice as many
	mostShown  = 128             // characters of a key
	maskPrefix = 3               // characters that a mask shows, and never more than a third of the key
)

func newKeyring(plain bool) *keyring {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	return &keyring{secret: secret, plain: plain, young: map[string]listed{}, turned: time.Now()}
}

func (k *keyring) sum(limiter, key string) string {
	h := hmac.New(sha256.New, k.secret)
	fmt.Fprintf(h, "%d:%s%s", len(limiter), limiter, key)
	return hex.EncodeToString(h.Sum(nil))
}

// list returns the id of a key, and remembers which key it is for some minutes.
func (k *keyring) list(limiter, key string) (id string) {
	id = k.sum(limiter, key)[:32]
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); len(k.young) >= mostYoung || now.Sub(k.turned) > listedFor {
		k.old, k.young, k.turned = k.young, map[string]listed{}, now
	}
	k.young[id] = listed{limiter, key}
	return id
}

// forget forgets all keys that were listed. Secrets are not kept for nobody.
func (k *keyring) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.old, k.young, k.turned = nil, map[string]listed{}, time.Now()
}

// find returns the key that was listed with an id.
func (k *keyring) find(id string) (listed, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l, ok := k.young[id]; ok {
		return l, true
	}
	l, ok := k.old[id]
	return l, ok
}

// show returns how a key is named: as it is, or masked by its first characters and
// a hash.
func (k *keyring) show(limiter, key string) string {
	if k.plain {
		return printable(key)
	}
	length := utf8.RuneCountInString(key)
	return printable(prefix(key, min(maskPrefix, length/3))) + "…" + k.sum(limiter, key)[:6]
}

// prefix is the first characters of a text. A byte that is no character counts as one.
func prefix(s string, characters int) string {
	end := 0
	for range characters {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end]
}

// printable writes any bytes such that they are read as what they are: what cannot
// be seen, or changes how its neighbours look, is escaped as in Go. It is cut where a
// page has seen enough of it.
func printable(s string) string { return escaped(s, mostShown) }

// nameOf is printable, of a limiter. Names are never so long that they have to be cut, and
// two of them would look alike.
func nameOf(s string) string { return escaped(s, len(s)) }

func escaped(s string, most int) string {
	var b strings.Builder
	written := 0
	for i := 0; i < len(s); written++ {
		if written == most {
			return b.String() + "…"
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\': // or an escape could be forged
			b.WriteString(`\\`)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}
