package store

// why gives the reason for the lead of another layout.
func why(table, row string) string {
	switch row {
	case readAtOnce.name:
		return "it is not used, because it asks for one more right (`+mget`) of whoever runs on the least of them, and reads an account that a call names twice before it is written"
	case asDeadline.name:
		return "it is not used, because the embedded server of the tests counts deadlines in parts of milliseconds, so that times to live would differ from those of Redis by one"
	case asHash.name:
		return "it is not used, because all that it leads in has to be paid for in the other columns"
	default:
		return ""
	}
}

// remarks close the section.
const remarks = "" +
	"No call has more than 64 accounts, or more than 512 runs of needs, so that others wait for a fraction of a millisecond; what is longer than 99 % of the calls is the machine, when it gives the processor to somebody else. A batch takes one round trip, in a Cluster one to each primary, all at once, with one account a call (`TestOneRoundTripPerNodeOfACluster`, `TestCallsAreSmallAndTripsAreFew`).\n\n" +
	"Where a tick's time goes: with no SET it takes 0.55× in a batch, and with any other single part left out (reading the question, reading the stored text, `%.17g`, the reply) 0.85× to 0.95×; of a lone account's time, 0.13× is for its terms and 0.09× for TIME, which a batch needs once.\n\n" +
	"Tried and dropped on 2026-11-30, each against the script of that day in one run, fastest of nine rounds:\n\n" +
	"- 15 arguments and a nested reply per account, a script of many functions (the one before): 1.8× for a tick, 1.7× for a need, 1.8× for a denial, 1.7× for an account alone.\n" +
	"- A function for each account instead of the body of a loop: 1.08× for a tick in a batch, 1.15× alone.\n" +
	"- `%d` for `%.0f`: 0.99×, and wrong where a `long` of C has 32 bits.\n" +
	"- A pattern for the stored number that matches digit by digit, point and exponent apart: no faster, and it backtracks over ten thousand digits for seconds.\n\n"
