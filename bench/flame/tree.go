package flame

import (
	"cmp"
	"slices"
)

// node is a function in the graph: all samples whose stacks agree from the root to it.
type node struct {
	name  string // full
	value int64  // of it and of what it called
	calls []*node
}

// tree merges the stacks of all samples under one root.
func (p *Profile) tree() *node {
	root := &node{name: "all", value: p.total}
	for _, s := range p.samples {
		at := root
		for _, name := range s.stack {
			at = at.call(name)
			at.value += s.value
		}
	}
	root.order()
	return root
}

// call is what a node calls by that name.
func (n *node) call(name string) *node {
	for _, c := range n.calls {
		if c.name == name {
			return c
		}
	}
	c := &node{name: name}
	n.calls = append(n.calls, c)
	return c
}

// order puts the widest first.
func (n *node) order() {
	slices.SortFunc(n.calls, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.name, b.name))
	})
	for _, c := range n.calls {
		c.order()
	}
}

// depth is how many rows the node takes, without what is narrower than least.
func (n *node) depth(least int64) int {
	deepest := 0
	for _, c := range n.calls {
		if c.value >= least {
			deepest = max(deepest, c.depth(least))
		}
	}
	return 1 + deepest
}
