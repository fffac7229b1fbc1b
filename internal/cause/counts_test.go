package cause

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// oddError is an error of somebody's, of which each kind has a name of its own.
type oddError struct{ panics bool }

func (e oddError) Error() string {
	if e.panics {
		panic("no text")
	}
	return "odd"
}

// Whatever errors there are, they are a bounded number of series.
func TestCausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewCounts(&Reader{})
		for i := range 100 {
			f.count(fmt.Sprint("cause ", i))
		}
		f.Add(oddError{panics: true})
		synctest.Wait()
		counts := f.ByCause()
		if len(counts) != mostCauses+1 || counts[Other] != 100-mostCauses+1 {
			t.Errorf("%d causes: %v", len(counts), counts)
		}

		f = NewCounts(&Reader{})
		slow := slowError{make(chan struct{})}
		f.Add(slow)
		synctest.Wait()
		for range mostUnread + 10 {
			f.Add(errors.New("one more"))
		}
		if n := f.ByCause()[Other]; n != 10 {
			t.Errorf("%d counted at once of 10 too many to wait", n)
		}
		close(slow.release)
		synctest.Wait()
		if n := sumOf(f.ByCause()); n != mostUnread+11 {
			t.Errorf("%d counted of %d: %v", n, mostUnread+11, f.ByCause())
		}
	})
}

func sumOf(counts map[string]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// slowError is an error of somebody's Dialer, whose text takes its time.
type slowError struct{ release chan struct{} }

func (e slowError) Error() string {
	<-e.release
	return "slow"
}
