package tests_test

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// What FailLocal admits is a share of what is free when an outage begins, in the second outage of
// a key as in the first: what its share has earned since is not there if the key is used up.
func TestEachOutageSharesWhatIsFreeThen(t *testing.T) {
	for _, accuracy := range everyAccuracy[:2] {
		t.Run(accuracy.String(), func(t *testing.T) {
			story(t, func(w *world) {
				n := w.node(hybrid.Options{})
				l := n.limiter("api", hybrid.PerMinute(100), hybrid.LimiterOptions{Accuracy: accuracy, OnFailure: hybrid.FailLocal})
				for outage, most := range []int{102, 10, 10} {
					if outage > 0 { // used up all the time, so that the node never forgets the key
						for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
							allow(t, l, "k", 1)
						}
					}
					n.link.Cut(true)
					byPolicy := 0
					for range 200 {
						if r := allow(t, l, "k", 1); r.Allowed && r.Path == hybrid.PathFallback {
							byPolicy++
						}
						time.Sleep(5 * time.Millisecond)
					}
					n.link.Cut(false)
					if byPolicy > most || outage == 0 && byPolicy == 0 {
						t.Errorf("outage %d: %d admitted by policy, at most %d", outage, byPolicy, most)
					}
					time.Sleep(5 * time.Second) // Redis hears of them
				}
			})
		})
	}
}
