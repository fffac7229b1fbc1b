package measure

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// makeKeys makes keys of 16 bytes, in random order: requests do not come in the
// order in which keys were first seen.
func makeKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%011d", i)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

// strangers are copies of keys in another order: what a contestant stores is not
// what its callers have.
func strangers(keys []string) []string {
	copies := make([]string, len(keys))
	for i, key := range slices.Sorted(slices.Values(keys)) {
		copies[i] = strings.Clone(key)
	}
	return copies
}
