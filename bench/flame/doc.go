// Package flame draws profiles as flame graphs, in SVG without scripts, and says which
// part of a profile goes into locks, and whose they are.
package flame
