package service

import (
	"fmt"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid/bench/flame"
)

// Profiles are what the profiled part came to.
type Profiles struct {
	CPU, Mutex *flame.Profile

	length time.Duration
}

// Profiles reads them; nil if none were made.
func (rep *Report) Profiles() (*Profiles, error) {
	if rep.CPU == nil {
		return nil, nil
	}
	cpu, err := flame.Read(rep.CPU, "cpu")
	if err != nil {
		return nil, err
	}
	mutex, err := flame.Read(rep.Mutex, "delay")
	if err != nil {
		return nil, err
	}
	return &Profiles{cpu, mutex, rep.profiled}, nil
}

const (
	mostOfSamples = 0.01  // what one lock may take of the samples
	shownOfLocks  = 0.003 // locks below it are not listed
)

// parts says on whose behalf the processors work.
func (p *Profiles) parts() string {
	var all []string
	for _, part := range p.CPU.Parts() {
		all = append(all, fmt.Sprintf("%s %.1f %%", part.Name, 100*part.Share))
	}
	return strings.Join(all, ", ")
}

// lockRows are the locks in the profile of the processors.
func (p *Profiles) lockRows() (rows []row, sum float64, above int) {
	for _, l := range p.CPU.Locks() {
		sum += l.Share
		if l.Share > mostOfSamples {
			above++
		}
		if l.Share >= shownOfLocks {
			rows = append(rows, row{l.Holder, []string{l.Kind, fmt.Sprintf("%.2f %%", 100*l.Share) + reachedMark(l.Share <= mostOfSamples)}})
		}
	}
	return rows, sum, above
}

// waitRows are the locks at which goroutines wait longest, in milliseconds per second.
func (p *Profiles) waitRows() (rows []row) {
	for i, l := range p.Mutex.Locks() {
		if i == 6 {
			break
		}
		rows = append(rows, row{l.Holder, []string{l.Kind, fmt.Sprintf("%.2f ms", float64(l.Value)/1e6/p.length.Seconds())}})
	}
	return rows
}

var (
	lockHeads = []string{"lock taken by", "kind", "of the samples (≤ 1 %)"}
	waitHeads = []string{"lock held by", "kind", "waited for, per second"}
)

// markdown is the profiles as a part of the document.
func (p *Profiles) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\nProcessor time of %v more under the same load, by the innermost function that is not the runtime's or the network's: %s.\n\n", p.length, p.parts())
	b.WriteString("![Flame graph of processor time](service-cpu.svg)\n\n")
	rows, sum, above := p.lockRows()
	fmt.Fprintf(b, "Locks take %.1f %% of the samples in all; locks above 1 %%: %d. ", 100*sum, above)
	fmt.Fprintf(b, "Where goroutines wait for locks: [service-mutex.svg](service-mutex.svg).\n\n")
	markdownTable(b, lockHeads, rows)
	b.WriteString("\n")
	markdownTable(b, waitHeads, p.waitRows())
}
