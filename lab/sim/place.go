package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid/internal/zipf"
)

// Place is the rule by which a request finds its node. It is comparable; its
// zero value is Uniform.
type Place struct {
	rule placement
	skew float64 // of ZipfNodes
}

type placement uint8

const (
	uniform placement = iota
	oneNode
	hopping
	least
	zipfNodes
)

// The rules without a setting; ZipfNodes has one.
var (
	Uniform = Place{rule: uniform} // every node alike
	OneNode = Place{rule: oneNode} // always the same
	Hopping = Place{rule: hopping} // 90 % to a node that changes ten times per minute
	Least   = Place{rule: least}   // always the node with the fewest tokens of the key
)

// ZipfNodes gives node number k a share of k^-skew.
func ZipfNodes(skew float64) Place { return Place{zipfNodes, skew} }

var placeNames = map[string]Place{"uniform": Uniform, "one": OneNode, "hopping": Hopping, "least": Least}

// String is what Set reads.
func (p *Place) String() string {
	for name, q := range placeNames {
		if *p == q {
			return name
		}
	}
	return fmt.Sprintf("zipf:%v", p.skew)
}

// Set reads "uniform", "one", "hopping", "least" or "zipf:SKEW".
func (p *Place) Set(s string) error {
	if q, ok := placeNames[s]; ok {
		*p = q
		return nil
	}
	text, ok := strings.CutPrefix(s, "zipf:")
	skew, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || !(skew >= 0 && skew <= 5) {
		return errors.New("allowed uniform, one, hopping, least or zipf:SKEW")
	}
	*p = ZipfNodes(skew)
	return nil
}

// placer chooses nodes.
type placer struct {
	rng    *rand.Rand
	tokens func(node int, key string) int64 // nil if nobody knows
	zipf   *zipf.Sampler
}

const hopEvery = 6 * time.Second

// choose returns one of the nodes that are there for a request at a time since
// the start.
func (c *placer) choose(p Place, nodes []int, since time.Duration, key string) int {
	n := len(nodes)
	switch p.rule {
	case oneNode:
		return nodes[0]
	case hopping:
		if c.rng.IntN(10) > 0 {
			return nodes[int(since/hopEvery)*7%n]
		}
	case least:
		if c.tokens != nil {
			return c.poorest(nodes, key)
		}
	case zipfNodes:
		return nodes[c.ranks(n, p.skew).Draw(c.rng)-1]
	}
	return nodes[c.rng.IntN(n)]
}

// poorest is the node with the fewest tokens; of several, any.
func (c *placer) poorest(nodes []int, key string) int {
	at, fewest, ties := -1, int64(0), 0
	for _, node := range nodes {
		switch t := c.tokens(node, key); {
		case at < 0 || t < fewest:
			at, fewest, ties = node, t, 1
		case t == fewest:
			if ties++; c.rng.IntN(ties) == 0 {
				at = node
			}
		}
	}
	return at
}

func (c *placer) ranks(n int, skew float64) *zipf.Sampler {
	if c.zipf == nil || !c.zipf.Is(n, skew) {
		c.zipf = zipf.New(n, skew)
	}
	return c.zipf
}
