package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/digest"
	"github.com/stowage-dev/stowage/internal/backend/gce/operations"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// maxAttempts is how many earlier attempts one call can pass.
const maxAttempts = 16

// change is a change that one operation makes in a zone, in a region, or in neither.
//
// Its request id is computed, never random. So a repeat, after a crash or from a second leader,
// joins the operation in progress, and a stale request does nothing. After an operation failed, the
// next attempt's id is computed from that operation's name. For a day the API would answer the old
// id with the old error.
type change struct {
	// doing describes the change for people.
	doing string
	at    place.Place
	// basis is the change, and all that it was decided on: the same for a repeat, and different
	// after the change took effect.
	basis []string
	// send requests the change.
	send func(ctx context.Context, requestID string) (*compute.Operation, error)
	// isSeen reports whether the change is in effect: an earlier operation may have made it, and it
	// may have been undone since. Nil: an operation that succeeded made it for good.
	isSeen func(ctx context.Context) (bool, error)
	// once: what was undone since isn't made again by the same call, whose caller may have an earlier state of the claim.
	once bool
}

// do makes a change: nil means that it is in effect, InProgress that its operation goes on.
func (c *Client) do(ctx context.Context, desired change) error {
	key := digest.Of(desired.basis...)
	before, _ := c.history.Get(key)
	var failed error
	for range maxAttempts {
		began, err := c.send(ctx, desired, digest.RequestID(key, before))
		switch {
		case err != nil && reason.Of(err) != reason.None:
			return err
		case err != nil:
			return errors.Join(reason.ErrSent, err)
		}
		ended, err := c.await(ctx, desired, began)
		if err != nil {
			return err
		}
		if failed = reason.Failure(ended); failed == nil {
			seen, err := tookEffect(ctx, desired, began)
			if seen || err != nil {
				return err
			}
			failed = backend.InProgress.Errorf("%s was done, and was undone since: it is done again", desired.doing)
		}
		before = ended.Name
		c.history.Add(key, before)
		if began.Status != operations.Done || desired.once && errors.Is(failed, backend.InProgress) {
			return failed
		}
		// The operation had ended before this request: it is an earlier attempt.
	}
	return failed
}

func (c *Client) send(ctx context.Context, desired change, id string) (*compute.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	return desired.send(ctx, id)
}

func tookEffect(ctx context.Context, desired change, began *compute.Operation) (bool, error) {
	if began.Status != operations.Done || desired.isSeen == nil {
		return true, nil
	}
	return desired.isSeen(ctx)
}

// await waits for an operation to end, for a limited time, in which other calls can be made. A
// caller that gets InProgress finds the operation again with the same request.
func (c *Client) await(ctx context.Context, desired change, operation *compute.Operation) (*compute.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Operation)
	defer cancel()
	if operation.Status == operations.Done {
		return operation, nil
	}
	backend.Accepted(ctx)
	ended, err := c.poller.Await(ctx, c.in(desired.at), operations.Limits{Call: c.limits.Call, Poll: c.limits.Poll}, operation.Name)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, backend.InProgress.Errorf("%s goes on (operation %s)", desired.doing, operation.Name)
	case err != nil:
		return nil, backend.InProgress.Errorf("%s goes on (operation %s): %v", desired.doing, operation.Name, err)
	}
	return ended, nil
}

func (c *Client) in(at place.Place) operations.Scope {
	return operations.Scope{Compute: c.compute, Project: c.Project, Place: at}
}

// running returns the operations of a type, such as attachDisk, that haven't ended in a place.
func (c *Client) running(ctx context.Context, at place.Place, operationType string) (found []*compute.Operation, err error) {
	filter := fmt.Sprintf(`(operationType = %q) AND (status != %q)`, operationType, operations.Done)
	err = c.in(at).List(ctx, filter, func(page *compute.OperationList) error {
		for _, operation := range page.Items {
			// An API may ignore a filter.
			if operation.OperationType == operationType && operation.Status != operations.Done {
				found = append(found, operation)
			}
		}
		return nil
	})
	return found, err
}

// PathOf is the part of a link after the endpoint: from projects/ on.
func PathOf(link string) string {
	if at := strings.Index(link, "projects/"); at >= 0 {
		return link[at:]
	}
	return link
}

// NameOf is the last part of a link.
func NameOf(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
