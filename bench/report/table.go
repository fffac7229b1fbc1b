package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Table is what one measurement came to.
type Table struct {
	Name    string // short, for choosing it
	Title   string
	About   string // what was done, for whoever reads the numbers
	Base    string // the row that ratios are to; "" for none
	Columns []Column
	Rows    []Row
	Notes   []string // what a reader must know beside the numbers
}

// Column is one number of each row.
type Column struct {
	Head   string // with the unit
	Better Better
	Base   string // the row that its ratios are to, if not the table's
}

// Better says which numbers of a column are good.
type Better int

const (
	Neither Better = iota // there is a right value, or none
	Less
	More
)

// Row is one contestant's numbers; NaN is none.
type Row struct {
	Name   string
	Role   Role
	Values []float64
}

// Role says whom a row is about.
type Role int

const (
	Peer  Role = iota
	Ours       // this library
	Floor      // what nobody can do without
)

// Win is a peer that is ahead of the base in some columns.
type Win struct {
	Row     string
	Columns []string
}

// noise is what a ratio must differ from 1 by, to be a difference.
const noise = 0.05

// Wins lists the peers that are ahead of the base, in the order of the rows.
func (t *Table) Wins() []Win {
	base := t.bases()
	var wins []Win
	for _, r := range t.Rows {
		if r.Role != Peer {
			continue
		}
		w := Win{Row: r.Name}
		for i, c := range t.Columns {
			if c.ahead(r.Values[i], base[i]) {
				w.Columns = append(w.Columns, c.Head)
			}
		}
		if len(w.Columns) > 0 {
			wins = append(wins, w)
		}
	}
	return wins
}

// ahead is false if either is NaN.
func (c Column) ahead(value, base float64) bool {
	switch c.Better {
	case Less:
		return value < base*(1-noise)
	case More:
		return value > base*(1+noise)
	default:
		return false
	}
}

// bases are the numbers that each column's ratios are to; NaN without one.
func (t *Table) bases() []float64 {
	list := make([]float64, len(t.Columns))
	for i, c := range t.Columns {
		list[i] = math.NaN()
		name := c.Base
		if name == "" {
			name = t.Base
		}
		if j := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name }); j >= 0 {
			list[i] = t.Rows[j].Values[i]
		}
	}
	return list
}

// cells are the texts of the table, heads first.
func (t *Table) cells() [][]string {
	head := []string{""}
	for _, c := range t.Columns {
		head = append(head, c.Head)
	}
	lines := [][]string{head}
	base := t.bases()
	for _, r := range t.Rows {
		line := []string{r.Name}
		for i, v := range r.Values {
			text := Number(v)
			if t.Columns[i].Better != Neither {
				text += ratio(v, base[i])
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	return lines
}

func ratio(v, base float64) string {
	if r := v / base; !math.IsNaN(r) && !math.IsInf(r, 0) {
		return fmt.Sprintf(" (%s×)", digits(r, 2))
	}
	return ""
}

// Number is a number in three digits; NaN is a dash.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return digits(v, 3)
}

// digits rounds to so many significant digits, and groups thousands.
func digits(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	places := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	unit := math.Pow10(places)
	if r := math.Round(v * unit); !math.IsInf(r, 0) {
		v = r / unit
	}
	return group(fmt.Sprintf("%.*f", max(places, 0), v))
}

func group(text string) string {
	whole, part, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if part != "" {
		part = "." + part
	}
	return sign + whole + part
}
