package hybridgrpc

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
)

// ErrNoKey is what ServerOptions.Failure is told, wrapped, of a call that has no key:
// its Key failed, found nothing, or more than 2 KiB. Test with errors.Is. What the
// constructors refuse is a hybrid.ErrInvalidOption.
var ErrNoKey = errors.New("hybridgrpc: the call has no key")

// invalid names what the constructors refuse: the field, its value, and what is allowed.
func invalid(field string, value any, allowed string) error {
	return fmt.Errorf("%w: hybridgrpc.%s: %v, allowed %s", hybrid.ErrInvalidOption, field, value, allowed)
}

// refusal is a status that keeps its cause, for errors.Is in this process. Only the
// status goes over the network: the cause may hold what a Key function put into it.
type refusal struct {
	status *status.Status
	cause  error // or nil
}

func (r *refusal) Error() string              { return r.status.Err().Error() }
func (r *refusal) GRPCStatus() *status.Status { return r.status }
func (r *refusal) Unwrap() error              { return r.cause }
