package modelcheck

// Flaw is a rule of the protocol that is left out. A check that finds nothing
// wrong with a protocol that lacks a rule proves nothing about one that has it.
type Flaw uint8

// The rules, each left out alone.
const (
	Sound             Flaw = iota // none is: the protocol as it is
	TagIgnored                    // every report counts as one of the present lease
	DropFirst                     // a gap is drained after its leases were forgotten
	UncoveredFree                 // what no lease covers is not charged
	UncoveredIgnored              // what no lease covers is neither charged nor lent
	ShortTTL                      // a key lives until it is drained, whatever it has lent
	LowerTTL                      // a writer with a lower limit shortens the key's life
	KeptTTL                       // a writer with a lower limit keeps the key's life, whatever it adds
	UncoveredRenewed              // what no lease covers is lent anew, whether or not there is room
	AheadStands                   // an account stands still until the clock is there, however far it is ahead
	AheadUnwritten                // an account far ahead of the clock is made of now, and that is not written
	ClockFollowed                 // the account's clock steps back with the store's
	RefusalGrants                 // a settle that refuses a need still grants a slice
	ReturnsLate                   // returned tokens leave the slice with the reply
	UnknownNotRun                 // a settle without a reply counts as not executed
	UnknownRan                    // a settle without a reply counts as executed
	Unmarked                      // a lease in doubt is reported like any other
	LifeFromReply                 // a lease's life counts from the reply
	Unguarded                     // a lease ends here when it ends there
	Resent                        // the client sends a settle again that got no reply
	NeedKeeps                     // a settle with a need keeps the slice
	ChargeLost                    // a settle without a reply takes its charges with it
	RefundTwice                   // what the slice took back is told as well
	RefundFree                    // a slice takes back what was never taken from it
	TurnUnlent                    // a turn is charged ahead, and not lent
	TurnBesideSlices              // a turn needs no room beside slices
	TurnAtOnce                    // a turn does not wait for the account to drain
	TurnOutlivesLease             // a turn is used when its lease is over
	TurnInDoubt                   // a turn whose renewal was not answered goes on by its old lease
	flaws
)

var flawNames = [flaws]string{
	"none", "tag ignored", "drop before drain", "uncovered is free", "uncovered is ignored", "TTL without the lease",
	"TTL shortened by a lower limit", "TTL kept by a lower limit", "uncovered is renewed", "ahead stands still",
	"ahead is not written", "clock followed back", "refusal grants", "returns leave with the reply",
	"unknown is not run", "unknown is run", "unknown is not marked", "life from the reply", "no guard", "sent again", "need keeps the slice",
	"a charge is lost", "a refund counts twice", "a refund is more than was taken",
	"a turn is not lent", "a turn beside slices", "a turn goes at once", "a turn outlives its lease", "a turn in doubt goes on",
}

func (f Flaw) String() string { return flawNames[f] }
