package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/hybridlimit/hybrid/lab/law"
)

// The generated files of how cost grows besides the pictures, from the repository's root.
const (
	ScalingDocument = "docs/benchmarks.md"
	ScalingNumbers  = "docs/scaling.json"
)

// Scaling is what was measured of how cost grows, one point after the other.
type Scaling []Point

// Point is one service: what it is, how to measure it again, and what came of it.
// Where keys are a sample, numbers of requests and operations are those of all; of
// calls, bytes and keys remembered a sample says nothing: they are 0.
type Point struct {
	Name    string // unique, for example "nodes 60"
	Axis    string // that it lies on, or Base or Far
	Sampled bool
	Nodes   int
	Keys    int
	Skew    float64
	Rate    float64 // requests per second
	Limit   float64 // tokens per minute, and of the bucket
	Warm    float64 // s of load before it was measured
	Span    float64 // s that it was measured for
	Command string  // that repeats it
	Made    string  // when and with what

	Requests                                                 int64
	Blocked                                                  int64 // waited for the store
	Operations                                               int64
	Asked, Refused, Refilled, Paced, Renewed, Returned, Told int64   // operations, by reason
	RoundTrips                                               int64   // that carried operations
	Polls                                                    int64   // other round trips
	Sent, Received                                           int64   // bytes
	Remembered                                               float64 // keys that a node remembers
}

// The axes, and the points that lie on none: the one that the others differ from in
// one thing, and one that differs in all.
const (
	ByKeys  = "keys"
	ByNodes = "nodes"
	ByRate  = "rate"
	ByLimit = "limit"
	Base    = "base"
	Far     = "far"
)

// Law is what the law says of the service, as long after its start as it was measured.
func (p Point) Law() law.Cost { return p.Service().Predict() }

// Service is the point as the law knows it.
func (p Point) Service() law.Service {
	return law.Service{
		Nodes: p.Nodes, Keys: p.Keys, Skew: p.Skew, Rate: p.Rate,
		Burst: p.Limit, Fill: time.Minute, Over: 0.1,
		Since: time.Duration((p.Warm + p.Span/2) * float64(time.Second)),
	}
}

// Of is where the point lies on an axis.
func (p Point) Of(axis string) float64 {
	switch axis {
	case ByKeys:
		return float64(p.Keys)
	case ByNodes:
		return float64(p.Nodes)
	case ByRate:
		return p.Rate
	}
	return p.Limit
}

// PerRequest is operations per request.
func (p Point) PerRequest() float64 { return ratio(p.Operations, p.Requests) }

// Put adds a point, or replaces the one of its name.
func (s Scaling) Put(p Point) Scaling {
	for i := range s {
		if s[i].Name == p.Name {
			s[i] = p
			return s
		}
	}
	return append(s, p)
}

// Find is the point of a name.
func (s Scaling) Find(name string) (Point, bool) {
	for _, p := range s {
		if p.Name == name {
			return p, true
		}
	}
	return Point{}, false
}

// JSON is the points as a file, one a line.
func (s Scaling) JSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, p := range s {
		line, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]\n")
	return b.Bytes(), nil
}

// ParseScaling reads what JSON wrote; a field that it does not know is an error.
func ParseScaling(file []byte) (s Scaling, err error) {
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.DisallowUnknownFields()
	err = dec.Decode(&s)
	return s, err
}

// ReadScaling reads a file; none is no point.
func ReadScaling(path string) (Scaling, error) {
	file, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ParseScaling(file)
}
