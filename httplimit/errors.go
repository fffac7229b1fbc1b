package httplimit

import (
	"errors"
	"fmt"

	"github.com/hybridlimit/hybrid"
)

// ErrNoKey is what Options.Failure is told, wrapped, of a request that has no
// key: its Key failed, found nothing, or more than 2 KiB. Test with errors.Is. What New refuses is
// a hybrid.ErrInvalidOption.
var ErrNoKey = errors.New("httplimit: the request has no key")

// refused names what New refuses: the field as its user wrote it, its value, and what
// is allowed.
func refused(field string, value any, allowed string) error {
	return fmt.Errorf("%w: %s: %v, allowed %s", hybrid.ErrInvalidOption, field, value, allowed)
}

// invalid is refused of what this package has.
func invalid(field string, value any, allowed string) error {
	return refused("httplimit."+field, value, allowed)
}
