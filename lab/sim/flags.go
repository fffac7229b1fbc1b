package sim

import (
	"flag"
	"fmt"
	"strings"
)

// Bind makes every field of an experiment a flag, whose default is what the
// field holds now.
func (e *Experiment) Bind(fs *flag.FlagSet) {
	fs.Var(limitValue{&e.Limit}, "limit", "limit of each key: `COUNT/PERIOD`, COUNT/PERIOD:BURST or window:COUNT/PERIOD (default 1000/min)")
	fs.Var(accuracyValue{&e.Accuracy}, "accuracy", "`dial`: balanced, strict, exact or within:OVER:UNDER")
	fs.Var(policyValue{&e.OnFailure}, "onfailure", "`policy`: local, open or closed")
	fs.DurationVar(&e.Sync, "sync", e.Sync, "Options.SyncInterval (default 100ms)")
	fs.DurationVar(&e.Timeout, "timeout", e.Timeout, "Options.StoreTimeout (default 20ms)")
	fs.IntVar(&e.Nodes, "nodes", e.Nodes, "`number` of nodes (default 20)")
	fs.IntVar(&e.Servers, "servers", e.Servers, "Options.Servers, the least `size` of the fleet")
	fs.Var(&e.Trip, "rtt", "round `trip`: a duration, exp:MEAN:MOST or uniform:LEAST:MOST (default 600us)")
	fs.Var(&e.Store, "store", "`memory` (an account in plain Go) or mini (an embedded Redis)")
	fs.IntVar(&e.Keys, "keys", e.Keys, "`number` of keys (default 1)")
	fs.Float64Var(&e.Skew, "zipf", e.Skew, "`exponent` of the keys' popularity; 0 = all alike")
	fs.Float64Var(&e.Sample, "sample", e.Sample, "make only so many `requests` per second for each octave of keys, by some keys that stand for all; 0 = all")
	fs.Int64Var(&e.Cost, "cost", e.Cost, "`tokens` per request (default 1)")
	fs.BoolVar(&e.Mixed, "mixed", e.Mixed, "costs are anything from 1 to -cost")
	fs.Var(&e.Arrivals, "arrivals", "`process`: poisson, batch:SIZE or onoff:ON:OFF")
	fs.Float64Var(&e.Load, "load", e.Load, "offered load as a `multiple` of the limits of all keys")
	fs.Float64Var(&e.Rate, "rate", e.Rate, "offered `requests` per second in all, instead of -load")
	fs.Var(&e.Place, "place", "`node` of a request: uniform, one, hopping, least or zipf:SKEW")
	fs.Var(&e.Scenes, "scenes", "`scenes` in turn instead of -load and -place: \"2m 0.5x uniform aside, 1m 50/s one\"")
	fs.Var(&e.Refunds, "refunds", "`PART:DELAY` of the admitted requests that are given back later, whole or in part")
	fs.Var(&e.Charges, "charges", "`PART:DELAY:BURSTS` of the requests that turn out to cost more later, up to so many bursts")
	fs.Float64Var(&e.Aside.AllOf, "allof", e.Aside.AllOf, "`part` of the requests that ask for another limit as well, which denies them")
	fs.Float64Var(&e.Aside.Flushes, "flushes", e.Aside.Flushes, "`part` of the requests after which their node is flushed")
	fs.Float64Var(&e.Aside.Resets, "resets", e.Aside.Resets, "`part` of the requests after which their key is reset")
	fs.IntVar(&e.MaxKeys, "maxkeys", e.MaxKeys, "Options.MaxKeys, the most `keys` that a node remembers (default the library's)")
	fs.BoolVar(&e.Quiet, "quiet", e.Quiet, "no requests during the warm-up")
	fs.DurationVar(&e.Still, "still", e.Still, "no requests in the first `part` of the warm-up")
	fs.DurationVar(&e.Warm, "warm", e.Warm, "warm-up (default 5s and one fill time)")
	fs.DurationVar(&e.Span, "span", e.Span, "measured time (default -fills)")
	fs.Float64Var(&e.Fills, "fills", e.Fills, "measured time in `fill times` of the limit (default 15)")
	fs.Var(&e.Faults, "faults", "what goes wrong: `list` of KIND[:NODE]@TIME[+LENGTH], KIND one of "+strings.Join(faultNames[:], " "))
	fs.Uint64Var(&e.Seed, "seed", e.Seed, "`seed` of everything random")
}

// Command is the command line that runs the experiment again.
func (e Experiment) Command() string {
	e, standard := e.written(), Experiment{}.written()
	defaults, ours := flag.NewFlagSet("", flag.ContinueOnError), flag.NewFlagSet("", flag.ContinueOnError)
	standard.Bind(defaults)
	e.Bind(ours)
	words := []string{"go run ./lab run"}
	ours.VisitAll(func(f *flag.Flag) {
		value := f.Value.String()
		if value == defaults.Lookup(f.Name).Value.String() {
			return
		}
		if strings.ContainsAny(value, " ,()") {
			value = "'" + value + "'"
		}
		words = append(words, fmt.Sprintf("-%s=%s", f.Name, value))
	})
	return strings.Join(words, " ")
}

// written is the experiment with all defaults but those that follow from other
// fields.
func (e Experiment) written() Experiment {
	bare := e
	bare.Warm, bare.Span = 0, 0
	bare = bare.withDefaults()
	if e.Warm == 0 || e.Warm == bare.Warm {
		bare.Warm = 0
	} else {
		bare.Warm = e.Warm
	}
	if e.Span != 0 && e.Span != bare.Span {
		bare.Span = e.Span
	} else {
		bare.Span = 0
	}
	return bare
}
