package slice

import "context"

type backgroundKey struct{}

// Background is the context of the calls that a node makes for itself, or for many callers
// at once: settles, heartbeats, the exchange of scarce keys. They have no parent that a
// trace could show, so a client that traces its calls can recognise them by it.
var Background = context.WithValue(context.Background(), backgroundKey{}, true)

// IsBackground reports whether ctx is Background or comes from it.
func IsBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }
