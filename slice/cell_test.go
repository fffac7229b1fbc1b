package slice

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

func cellOf(tokens int64) *Cell {
	c := new(Cell)
	c.renew(1, tokens)
	return c
}

func TestACellServesItsTokens(t *testing.T) {
	var dead Watermark
	c := cellOf(5)
	if left, ok := c.Take(3, &dead); !ok || left != 2 {
		t.Errorf("left %d, %t", left, ok)
	}
	if _, ok := c.Take(3, &dead); ok || c.Tokens() != 2 || c.Alive(&dead) != 2 {
		t.Error("a refused take changed something")
	}
	if _, ok := c.Take(math.MaxInt64, &dead); ok {
		t.Error("a cost beyond all cells was served")
	}
	if _, ok := new(Cell).Take(1, &dead); ok {
		t.Error("the zero cell served")
	}
}

func TestACellHoldsTheMostTokens(t *testing.T) {
	var dead Watermark
	c := cellOf(MaxSlice)
	if left, ok := c.Take(MaxSlice, &dead); !ok || left != 0 || c.Expired(&dead) {
		t.Errorf("left %d, %t", left, ok)
	}
	if c.LargestCost() != MaxSlice {
		t.Error("the cost was cut")
	}
}

func TestExactlyOneTakeCrosses(t *testing.T) {
	var dead Watermark
	c := cellOf(1000)
	c.SetLow(300)
	var crossed atomic.Int32
	var wg sync.WaitGroup
	for g := range int64(4) {
		wg.Go(func() {
			for {
				left, ok := c.Take(g+1, &dead)
				if !ok {
					return
				}
				if c.Crossed(left, g+1) {
					crossed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if crossed.Load() != 1 {
		t.Errorf("%d takes crossed", crossed.Load())
	}
}

func TestTheLargestCostIsReadOnce(t *testing.T) {
	var dead Watermark
	c := cellOf(100)
	for _, n := range []int64{1, 7, 3} {
		c.Take(n, &dead)
	}
	if a, b := c.LargestCost(), c.LargestCost(); a != 7 || b != 1 {
		t.Errorf("largest costs %d and then %d", a, b)
	}
}

func TestACellIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Cell{}); size != 16 {
		t.Errorf("a cell has %d bytes", size)
	}
	if size := unsafe.Sizeof(Lease{}); size > 40 {
		t.Errorf("a lease has %d bytes", size)
	}
}
