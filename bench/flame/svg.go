package flame

import (
	"fmt"
	"html"
	"strings"
)

// Measures of the picture, in pixels.
const (
	width     = 1200
	rowHeight = 17
	head      = 58   // for title and legend
	letter    = 6.2  // width of one
	thinnest  = 0.75 // a function that is narrower is left out, with what it calls
	narrowest = 28   // a function that is narrower has no text
)

// SVG draws the profile from the top down: each row is called by the one above it, and is
// as wide as its part of the whole. Pointing at a function tells its name and part.
func (p *Profile) SVG(title string) string {
	root := p.tree()
	c := canvas{total: max(p.total, 1)}
	rows := root.depth(int64(thinnest * float64(c.total) / width))
	height := head + rows*rowHeight + 6
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="Menlo,Consolas,monospace" font-size="10.5">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&c.b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&c.b, `<text x="8" y="20" font-size="14" font-family="Arial,sans-serif">%s</text>`+"\n", html.EscapeString(title))
	c.legend()
	c.draw(root, 0, 0)
	c.b.WriteString("</svg>\n")
	return c.b.String()
}

// canvas is a picture in the making.
type canvas struct {
	b     strings.Builder
	total int64
}

// legend says what the colours mean.
func (c *canvas) legend() {
	x := 8
	for _, k := range kinds {
		fmt.Fprintf(&c.b, `<rect x="%d" y="31" width="11" height="11" fill="%s" stroke="#999999" stroke-width="0.5"/><text x="%d" y="40.5">%s</text>`+"\n",
			x, k.color, x+15, k.name)
		x += 36 + int(letter*float64(len(k.name)))
	}
}

// draw paints a node, and below it what it called, from a value on.
func (c *canvas) draw(n *node, from int64, row int) {
	w := c.length(n.value)
	if w < thinnest {
		return
	}
	x, y := c.length(from), head+row*rowHeight
	name := short(n.name)
	fmt.Fprintf(&c.b, `<g><title>%s: %.2f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" stroke="#ffffff" stroke-width="0.6"/>`,
		html.EscapeString(plain(n.name)), 100*float64(n.value)/float64(c.total), x, y, w, rowHeight-1, kinds[kindOf(n.name)].color)
	if text := fit(name, w); text != "" {
		fmt.Fprintf(&c.b, `<text x="%.1f" y="%d">%s</text>`, x+3, y+12, html.EscapeString(text))
	}
	c.b.WriteString("</g>\n")
	for _, call := range n.calls {
		c.draw(call, from, row+1)
		from += call.value
	}
}

func (c *canvas) length(value int64) float64 { return width * float64(value) / float64(c.total) }

// fit is as much of a name as a width has room for.
func fit(name string, w float64) string {
	letters := int((w - 6) / letter)
	switch {
	case w < narrowest:
		return ""
	case len(name) <= letters:
		return name
	default:
		return name[:max(letters-1, 1)] + "…"
	}
}
