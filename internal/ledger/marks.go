package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

const (
	markTTL  = time.Minute // of a mark, and of all of them after the last one
	maxMarks = 4096        // kept at once, the newest
)

// board is the marks of scarce accounts. One account and cost has one mark.
type board struct {
	sorted []mark           // the oldest first; of one moment, by ID
	at     map[string]int64 // by ID: µs
	until  int64            // ms, the last that it lives to see
}

type mark struct {
	id string // as a sorted set holds it
	slice.Mark
}

func newBoard() board { return board{at: map[string]int64{}} }

func (b *board) clone() board {
	return board{sorted: slices.Clone(b.sorted), at: maps.Clone(b.at), until: b.until}
}

func older(a, b mark) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.id, b.id))
}

// Mark says that accounts are scarce. Repeating it moves a mark to the newest
// time; marks a minute older than the newest of these go.
func (s *Store) Mark(_ context.Context, marks []slice.Mark) error {
	if len(marks) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now() / 1000
	b := s.data.marks.present(now)
	newest := int64(0)
	for _, m := range marks {
		b.put(mark{id: markID(m), Mark: m})
		newest = max(newest, m.At)
	}
	b.drop(b.after(newest - markTTL.Microseconds()))
	b.drop(len(b.sorted) - maxMarks)
	b.until = now + markTTL.Milliseconds()
	return nil
}

func markID(m slice.Mark) string {
	paid := ""
	if m.Paid {
		paid = "+"
	}
	return strconv.FormatInt(m.Cost, 10) + paid + ":" + m.Account
}

// Claim takes marks off the board, and says which of them were there.
func (s *Store) Claim(_ context.Context, marks []slice.Mark) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.data.marks.present(s.now() / 1000)
	claimed := make([]bool, len(marks))
	for i, m := range marks {
		id := markID(m)
		if at, known := b.at[id]; known {
			m.At, claimed[i] = at, true
			j, _ := slices.BinarySearchFunc(b.sorted, mark{id, m}, older)
			b.sorted = slices.Delete(b.sorted, j, j+1)
			delete(b.at, id)
		}
	}
	return claimed, nil
}

// present empties a board that has expired.
func (b *board) present(now int64) *board {
	if now > b.until {
		*b = newBoard()
	}
	return b
}

// put makes a mark, or moves it.
func (b *board) put(m mark) {
	if at, known := b.at[m.id]; known {
		old := m
		old.At = at
		i, _ := slices.BinarySearchFunc(b.sorted, old, older)
		b.sorted = slices.Delete(b.sorted, i, i+1)
	}
	b.at[m.id] = m.At
	i, _ := slices.BinarySearchFunc(b.sorted, m, older)
	b.sorted = slices.Insert(b.sorted, i, m)
}

// after returns how many marks were made at a moment or before.
func (b *board) after(at int64) int {
	return sort.Search(len(b.sorted), func(i int) bool { return b.sorted[i].At > at })
}

// drop removes the n oldest, if n > 0.
func (b *board) drop(n int) {
	for _, m := range b.sorted[:max(n, 0)] {
		delete(b.at, m.id)
	}
	b.sorted = slices.Delete(b.sorted, 0, max(n, 0))
}

// Marks returns at most so many marks made after since (µs of the store's
// clock), the oldest first.
func (s *Store) Marks(_ context.Context, since int64, most int) ([]slice.Mark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.data.marks.present(s.now() / 1000)
	i := b.after(since)
	n := min(max(most, 0), len(b.sorted)-i)
	var newer []slice.Mark
	for _, m := range b.sorted[i : i+n] {
		newer = append(newer, m.Mark)
	}
	return newer, nil
}
