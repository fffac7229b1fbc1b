package report

// What the runs of package survey are, for readers. Whoever changes one there
// changes it here.
const (
	captionScenarios = "One key, 20 nodes, Poisson arrivals; measured for 15 fill times after a warm-up. Costs are those of Balanced; what is left unspent is that of Strict, where no floor can hide it. Targets are in parentheses; ✗ marks a miss."

	captionLoad = "One key of 1000 per minute, 90 % of the load on one node that changes ten times a minute, the rest on all 20 alike; measured for 15 fill times (5 from 5× on)."

	captionCosts = "One key, load on all 20 nodes alike. A limit of 1000 per second costs the library what one of 1000 per minute does: tokens count, not time. The static scheme has no store."

	captionExcess = "One key of 1000 per second, and crowds at ten times and twice that: each uses the limit up on one node, then comes to all 20, which have not been told yet, and pauses for 4 s. What is admitted beyond the limit is a part of what the limit allows, in the interval in which it is most."

	captionDial = "A service with 1000 keys of 1000 per minute each, of Zipf popularity (exponent 0.99), that are asked for at 10 % of their limits together, by 20 nodes, for 5 minutes, and were not asked for before. Over-admission: the worst of that and of crowds at a hundred times a limit of 1000 per second, which use it up on one node and then come to all."

	captionSchemes = "The same service on the other schemes."
)
