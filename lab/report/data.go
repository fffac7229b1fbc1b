// Package report makes the measured part of docs/accuracy.md: from one file of
// numbers its tables and its pictures, which are the same for the same numbers.
//
//	runs ─▶ docs/accuracy.json ─┬─▶ tables between markers in docs/accuracy.md
//	                            └─▶ docs/img/*-light.svg, *-dark.svg
//
// It measures nothing itself; package survey does.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Data is everything that has been measured for the documentation.
type Data struct {
	Made string // what it was made with and when, for example "2026-11-29, go1.26.8"
	Rows []Row
}

// Row is one run: what it is a measurement of, how to repeat it, and what came of it.
type Row struct {
	Set     string  // the chart or table that it is for
	Subject string  // the line in a chart, for example "hybrid, Balanced"
	X       float64 // where on the line
	Name    string  `json:",omitempty"` // in words, where X does not say it
	Command string  // arguments of the lab that repeat the run
	Figures
}

// Figures are the counts of a run after its warm-up. They are whole numbers as
// far as possible, so that a repeated run can be compared with them exactly.
type Figures struct {
	Requests     int64
	Operations   int64   // of the store
	Blocked      int64   // requests that waited for the store
	Delay        int64   // of all requests together, ns
	Admitted     int64   // tokens
	Ideal        int64   // tokens that a perfect central limiter admits of the same requests
	FalseDenials int64   // requests denied although an ideal account had room
	Excess       float64 // tokens beyond the limit in the interval with most of them, warm-up included; below 0 is room left
	Within       float64 // tokens that the limit allows in that interval
}

// OperationsPerRequest is what a request costs the store.
func (f Figures) OperationsPerRequest() float64 { return ratio(f.Operations, f.Requests) }

// Waited is the part of the requests that waited for the store.
func (f Figures) Waited() float64 { return ratio(f.Blocked, f.Requests) }

// MeanDelay is what the limiter adds to a request, in ms.
func (f Figures) MeanDelay() float64 { return ratio(f.Delay, f.Requests) / 1e6 }

// OfIdeal is what was admitted as a part of what a perfect central limiter admits.
func (f Figures) OfIdeal() float64 {
	if f.Ideal == 0 {
		return 1
	}
	return ratio(f.Admitted, f.Ideal)
}

// Over is the excess as a part of what the limit allows in the interval with the
// greatest excess: what the promise bounds. It is 0 if the limit held.
func (f Figures) Over() float64 {
	if f.Within == 0 {
		return 0
	}
	return max(0, f.Excess) / f.Within
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Set are the rows of one chart or table, in the order in which they were made.
func (d Data) Set(name string) (rows []Row) {
	for _, r := range d.Rows {
		if r.Set == name {
			rows = append(rows, r)
		}
	}
	return rows
}

// Find is the row that measures the same as another, whose figures do not matter.
func (d Data) Find(like Row) (Row, bool) {
	for _, r := range d.Rows {
		like.Figures = r.Figures
		if r == like {
			return r, true
		}
	}
	return Row{}, false
}

// JSON is the data as a file: one row a line, so that a change can be read.
func (d Data) JSON() ([]byte, error) {
	made, err := json.Marshal(d.Made)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"Made\": %s, \"Rows\": [", made)
	for i, r := range d.Rows {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("row %d, %s: %w", i, r.Command, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}

// Parse reads what JSON wrote; a field that it does not know is an error.
func Parse(file []byte) (d Data, err error) {
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.DisallowUnknownFields()
	err = dec.Decode(&d)
	return d, err
}
