package exact

import "errors"

// Misuse. All are wrapped with the field and its allowed range.
var (
	ErrInvalidLimit  = errors.New("hybrid: invalid limit")
	ErrInvalidCost   = errors.New("hybrid: invalid cost")
	ErrInvalidOption = errors.New("hybrid: invalid option")
)

// ErrReply marks a reply that no settle script sends: a proxy or a hook is in
// the way. What became of the command is unknown.
var ErrReply = errors.New("hybrid: unexpected reply")

// refusal is the error text of one account in a batch whose other accounts
// may have settled. It implements redis.Error, so the predicates of go-redis
// (IsOOMError, HasErrorPrefix, …) see what they would see of a whole command.
type refusal string

func (r refusal) Error() string { return string(r) }
func (r refusal) RedisError()   {}
